// Opens pages in Chromium as readers do and prints what was seen, as JSON: node visit.mjs MODULES CHROMIUM PICTURES PAGE...
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, chromiumPath, pictures, ...pages] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
const seen = {};
try {
  for (const file of pages) seen[file] = await visit(file);
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));

async function visit(file) {
  const found = { troubles: [], requests: [], sideways: {}, violations: {} };
  for (const [name, width, colorScheme] of [
    ["light", 1280, "light"], ["dark", 1280, "dark"], ["phone", 340, "light"], ["dark-phone", 340, "dark"], ["zoomed", 640, "light"],
  ]) {
    const page = await open(file, found, { viewport: { width, height: 900 }, colorScheme });
    found.sideways[name] = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate("axe.run()");
    found.violations[name] = violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes[0].html.slice(0, 200) }));
    await page.screenshot({ path: path.join(pictures, `${path.basename(file)}.${name}.png`), fullPage: true });
    await page.context().close();
  }
  const page = await open(file, found, { viewport: { width: 1280, height: 900 } });
  Object.assign(found, {
    slider: await slide(page), keys: await useKeys(page), mouse: await useMouse(page), search: await searchTree(page),
    theme: await turnTheme(page), reached: await tabThrough(page), print: await print(page),
  });
  await page.context().close();
  found.still = await readWithoutScript(file, found);
  return found;
}

async function open(file, found, options) {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  await context.setOffline(true);
  const page = await context.newPage();
  page.on("console", (message) => found.troubles.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => found.troubles.push(error.message));
  page.on("request", (request) => found.requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  return page;
}

// What the tree shows: its items, those that can be folded and are unfolded, and those without anything below.
async function state(page) {
  return page.evaluate(readState);
}

function readState() {
  const items = [...document.querySelectorAll("[role=treeitem]")];
  return {
    n_items: items.length,
    n_open: items.filter((item) => item.getAttribute("aria-expanded") === "true").length,
    n_ends: items.filter((item) => !item.hasAttribute("aria-expanded")).length,
    text: document.getElementById("tree-step").getAttribute("aria-valuetext"),
    focus: document.activeElement.getAttribute("aria-label"),
    level: Number(document.activeElement.getAttribute("aria-level")),
  };
}

async function slide(page) {
  const slider = page.locator("#tree-step");
  const start = await slider.inputValue();
  const rest = await state(page);
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  const pressed = await slider.inputValue();
  const most = Number(await slider.getAttribute("max"));
  const steps = [];
  for (const value of new Set([0, 1, 2, 3, 4, Number(start), most >> 1, most - 1, most].filter((one) => one >= 0 && one <= most))) {
    await slider.fill(String(value));
    await page.click("#tree-all");
    steps.push({ value, ...await state(page) });
  }
  await page.click("#tree-fit");
  await slider.fill(start);
  return { start: Number(start), pressed: Number(pressed), most, rest, steps };
}

async function useKeys(page) {
  const states = {};
  await page.locator("[role=treeitem]").first().focus();
  for (const key of ["Enter", "Enter", "ArrowRight", "ArrowLeft", "End", "Home", "ArrowDown", " "]) {
    await page.keyboard.press(key);
    states[`${Object.keys(states).length} ${key}`] = await state(page);
  }
  await page.click("#tree-fit");
  return states;
}

async function useMouse(page) {
  const before = await state(page);
  await page.locator("[role=treeitem] .fold").first().click();
  const folded = await state(page);
  await page.locator("[role=treeitem] .fold").first().click();
  await page.locator("[role=treeitem]").last().click();
  const rule = await page.locator("#tree-node").innerText();
  const layouts = [];
  for (const layout of ["down", "right", "list"]) {
    await page.click(`[data-layout=${layout}]`);
    layouts.push([layout, await page.locator(`[data-layout=${layout}]`).getAttribute("aria-pressed"), (await state(page)).n_items]);
  }
  await page.click("#tree-fit");
  return { before, folded, unfolded: await state(page), rule, layouts };
}

async function searchTree(page) {
  await page.click("#tree-all");
  const name = await page.locator("#tree-node h3").innerText();
  const word = name.replace(/^(Splits on|Predicts) /, "");
  await page.fill("#tree-search", word);
  const hits = await page.locator(".node.hit").count();
  const said = await page.locator("#tree-found").innerText();
  await page.fill("#tree-search", "");
  return { hits, said, left: await page.locator(".node.hit").count() };
}

async function turnTheme(page) {
  const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
  const before = await ground();
  await page.click("#theme");
  const after = await ground();
  await page.click("#theme");
  return { before, after, again: await ground() };
}

async function tabThrough(page) {
  await page.evaluate("document.activeElement.blur(); scrollTo(0, 0)");
  const reached = new Set();
  for (let k = 0; k < 150; k++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => {
      const one = document.activeElement;
      return one.id || one.getAttribute("role") || one.getAttribute("data-layout") || one.className || one.localName;
    }));
  }
  return [...reached];
}

async function print(page) {
  await page.evaluate("dispatchEvent(new Event('beforeprint'))");
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const shown = await state(page);
  const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor");
  const controls = await page.locator(".tools, #tree-step, #theme, nav").evaluateAll((all) => all.filter((one) => one.offsetParent).length);
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  await page.evaluate("dispatchEvent(new Event('afterprint'))");
  return { ...shown, controls, ground };
}

async function readWithoutScript(file, found) {
  const page = await open(file, found, { javaScriptEnabled: false });
  const still = {
    tree: await page.locator(".still pre").innerText(),
    slider: await page.locator("#tree-step").isVisible(),
    sections: await page.locator("section").count(),
  };
  await page.context().close();
  return still;
}
