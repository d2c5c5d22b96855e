"use strict";
// The report's script: the theme, the place in the contents, and the tree that unfolds, folds and is pruned by a slider.
// The page is whole without it: the tree then stands there as text.
(() => {
  const page = document.documentElement;
  page.classList.add("live");
  chooseTheme();
  followContents();
  const data = document.getElementById("tree-data");
  if (data) exploreTree(JSON.parse(data.textContent));

  function chooseTheme() {
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (page.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    const name = () => { button.textContent = isDark() ? "Light page" : "Dark page"; };
    button.addEventListener("click", () => { page.dataset.theme = isDark() ? "light" : "dark"; name(); });
    system.addEventListener("change", name);
    name();
  }

  function followContents() {
    const links = [...document.querySelectorAll("nav.contents a")];
    const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
    const seen = new Set();
    const mark = () => {
      const first = sections.findIndex((section) => seen.has(section));
      links.forEach((link, place) => {
        if (place === first) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    };
    const watch = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
      mark();
    }, { rootMargin: "-15% 0px -60% 0px" });
    sections.forEach((section) => watch.observe(section));
  }

  // --- the tree -----------------------------------------------------------------------------------------------

  function exploreTree(story) {
    const SVG = "http://www.w3.org/2000/svg";
    const MOST_OPEN = 24; // tests that are unfolded of themselves, those with the most rows first
    const MOST_BOXES = 80; // beyond, a tree is an outline unless it is asked for otherwise
    const PAD = 10, BAR = 7, TALL = 54, LINE = 30, STEP = 18; // pixels: inside boxes, of bars, of boxes, of rows, of indents
    const LABEL = 20, BEND = 30, GAP = 14;
    const THIN = 1.2, THICK = 9;
    const FIT = 0.82; // a drawing that must shrink below this gives way to another
    const TIME = 280; // milliseconds of a change
    const LAYOUTS = { down: placeDown, right: placeRight, list: placeList };

    const find = (id) => document.getElementById(`tree-${id}`);
    const view = find("view"), slider = find("step"), caption = find("caption"), panel = find("node"), found = find("found");
    const nodes = story.nodes.map(([parent, branch, test, answer, rows, parts, cut, fill, picture], id) =>
      ({ id, parent, branch, test, answer, rows, parts, cut, fill, picture, children: [], depth: 0 }));
    for (const node of nodes.slice(1)) {
      nodes[node.parent].children.push(node);
      node.depth = nodes[node.parent].depth + 1;
    }
    const byRows = nodes.filter((node) => node.test !== null).sort((a, b) => b.rows - a.rows || a.id - b.id);
    const last = story.steps.length - 1;
    const choices = new Map(); // node -> unfolded or folded by hand
    const shown = new Map(); // node -> its group, its branch and where they are
    let step = story.opened, wanted = "auto", zoom = 1, current = 0, hits = [], isPrinting = false, frame = 0;
    let scale = 1;

    const svg = make("svg", { role: "presentation" });
    const branches = svg.appendChild(make("g", { "aria-hidden": "true" }));
    const boxes = svg.appendChild(make("g", { role: "tree", "aria-label": story.label }));
    const words = svg.appendChild(make("g", { "aria-hidden": "true" })); // each box says the same, and more, by its label
    view.append(svg);
    const pen = document.createElement("canvas").getContext("2d");
    const face = getComputedStyle(page).getPropertyValue("--sans");

    // --- what there is to see ---

    const isTest = (node) => node.test !== null && node.cut > step;
    const unfolded = new Set();
    const isOpen = (node) => isTest(node) && (isPrinting || (choices.has(node) ? choices.get(node) : unfolded.has(node)));
    const below = (node) => (isOpen(node) ? node.children : []);

    function chooseUnfolded() {
      unfolded.clear();
      for (const node of byRows) if (unfolded.size < MOST_OPEN && isTest(node)) unfolded.add(node);
    }

    function listVisible() {
      const seen = [], stack = [nodes[0]];
      while (stack.length) {
        const node = stack.pop();
        seen.push(node);
        stack.push(...below(node).slice().reverse());
      }
      return seen;
    }

    function countLeaves(node) {
      let n = 0;
      for (const stack = [node]; stack.length;) {
        const one = stack.pop();
        if (isTest(one)) stack.push(...one.children);
        else n += 1;
      }
      return n;
    }

    function pathTo(node) {
      const way = [];
      for (let at = node; at; at = nodes[at.parent]) way.unshift(at);
      return way;
    }

    // --- words ---

    const number = (value) => Number(value).toLocaleString("en", { maximumFractionDigits: 1 });
    const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
    const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
    const leaves = (n) => `${number(n)} ${n === 1 ? "leaf" : "leaves"}`;

    function titleOf(node) {
      return isTest(node) ? node.test : node.answer;
    }

    function shareOf(node) {
      return node.parts ? Math.max(...node.parts.map((part) => part[1])) / (node.rows || 1) : null;
    }

    function moreOf(node) {
      if (isTest(node) && !isOpen(node)) return `+ ${leaves(countLeaves(node))}`;
      const rows = `${number(node.rows)} rows`;
      if (isTest(node)) return node.parts ? rows : `${rows} · ${node.answer}`;
      return node.parts ? `${rows} · ${percent(shareOf(node))}` : rows;
    }

    function describeNode(node) {
      const where = node.branch ? `${nodes[node.parent].test} ${node.branch}: ` : "";
      const what = isTest(node) ? `splits on ${node.test}` : `predicts ${node.answer}`;
      return `${where}${what}, ${plural(node.rows, "row")}`;
    }

    const sum = (parts) => parts.reduce((total, part) => total + part[1], 0);

    const widths = new Map();
    function widthOf(text, size, weight = 400) {
      const key = `${size} ${weight} ${text}`;
      if (!widths.has(key)) {
        pen.font = `${weight} ${size}px ${face}`;
        widths.set(key, pen.measureText(text).width);
      }
      return widths.get(key);
    }

    function cutText(text, width, size, weight = 400) {
      if (widthOf(text, size, weight) <= width) return text;
      let low = 0, high = text.length;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (widthOf(`${text.slice(0, middle)}…`, size, weight) <= width) low = middle;
        else high = middle - 1;
      }
      return `${text.slice(0, low).trimEnd()}…`;
    }

    // --- where things stand: each layout gives a place {x, y, width, height} to every visible node ---

    function boxOf(node, most) {
      const width = Math.max(widthOf(titleOf(node), 12.5, 650), widthOf(moreOf(node), 11)) + 2 * PAD;
      return { width: Math.min(Math.max(width, 78), most), height: TALL };
    }

    const labelWidth = (node, most) => (node.branch ? Math.min(widthOf(node.branch, 11), most) : 0);

    // Boxes below their parents; subtrees as close as their outlines allow (Reingold and Tilford 1981).
    function placeDown(visible) {
      const places = new Map(visible.map((node) => [node, boxOf(node, 168)]));
      const outlines = new Map();
      for (const node of visible.slice().reverse()) {
        const place = places.get(node);
        const half = Math.max(place.width, labelWidth(node, 130) + 8) / 2 + GAP / 2;
        const outline = { low: [-half], high: [half] };
        const kids = below(node), offsets = [];
        let lows = [], highs = [];
        for (const kid of kids) {
          const next = outlines.get(kid);
          let shift = offsets.length ? -Infinity : 0;
          if (offsets.length) next.low.forEach((low, d) => { if (d < highs.length) shift = Math.max(shift, highs[d] - low); });
          offsets.push(shift);
          next.low.forEach((low, d) => {
            lows[d] = d < lows.length ? Math.min(lows[d], low + shift) : low + shift;
            highs[d] = d < highs.length ? Math.max(highs[d], next.high[d] + shift) : next.high[d] + shift;
          });
        }
        const middle = kids.length ? (offsets[0] + offsets[offsets.length - 1]) / 2 : 0;
        kids.forEach((kid, k) => { places.get(kid).offset = offsets[k] - middle; });
        outline.low.push(...lows.map((low) => low - middle));
        outline.high.push(...highs.map((high) => high - middle));
        outlines.set(node, outline);
      }
      const whole = outlines.get(nodes[0]);
      const left = -Math.min(...whole.low), width = left + Math.max(...whole.high);
      let height = 0;
      for (const node of visible) {
        const place = places.get(node), parent = places.get(nodes[node.parent]);
        place.centre = parent ? parent.centre + place.offset : left;
        place.x = place.centre - place.width / 2;
        place.y = 2 + node.depth * (TALL + BEND + LABEL);
        height = Math.max(height, place.y + TALL + 14);
      }
      return { kind: "down", places, width, height };
    }

    // Boxes to the right of their parents; every end has a line of its own.
    function placeRight(visible) {
      const places = new Map(visible.map((node) => [node, boxOf(node, 200)]));
      const sizes = [], labels = [];
      for (const node of visible) {
        sizes[node.depth] = Math.max(sizes[node.depth] || 0, places.get(node).width);
        labels[node.depth] = Math.max(labels[node.depth] || 0, labelWidth(node, 120));
      }
      const lefts = sizes.map(() => 2);
      for (let d = 1; d < sizes.length; d++) lefts[d] = lefts[d - 1] + sizes[d - 1] + BEND + 22 + labels[d];
      let y = 2;
      for (const node of visible) {
        const place = places.get(node);
        place.x = lefts[node.depth];
        place.room = labels[node.depth];
        place.label = labelWidth(node, 120);
        if (!below(node).length) { place.y = y; y += TALL + 8; }
      }
      for (const node of visible.slice().reverse()) {
        const kids = below(node);
        if (kids.length) places.get(node).y = (places.get(kids[0]).y + places.get(kids[kids.length - 1]).y) / 2;
      }
      const width = Math.max(...visible.map((node) => places.get(node).x + places.get(node).width)) + 16;
      return { kind: "right", places, width, height: y };
    }

    // One line for each node, further in than its parent; rows and bars stand in columns.
    function placeList(visible, room) {
      const width = Math.max(room, 280);
      const indent = Math.min(width < 420 ? 10 : STEP, (width * 0.35) / Math.max(...visible.map((node) => node.depth), 1));
      const places = new Map(visible.map((node, k) =>
        [node, { x: 0, y: k * LINE, width, height: LINE, indent: 11 + indent * node.depth }]));
      return { kind: "list", places, width, height: visible.length * LINE + 4 };
    }

    function choosePlaces(visible) {
      const room = (isPrinting ? 660 : view.clientWidth) - 20;
      if (isPrinting) return placeList(visible, room);
      if (wanted !== "auto") return LAYOUTS[wanted](visible, room);
      if (room < 520 || visible.length > MOST_BOXES) return placeList(visible, room);
      for (const layout of [placeDown, placeRight]) {
        const made = layout(visible);
        if (made.width * FIT <= room && made.height * FIT <= 1000) return made;
      }
      return placeList(visible, room);
    }

    // --- drawing ---

    function make(name, attributes = {}, ...inside) {
      const element = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
      element.append(...inside);
      return element;
    }

    const write = (words, look, x, y, anchor = "start") => make("text", { class: look, x, y, "text-anchor": anchor }, words);

    function drawBar(node, x, y, width) {
      const bars = [make("rect", { class: "track", x, y, width, height: BAR, rx: 1 })];
      const parts = node.parts ? node.parts.map(([k, rows]) => [story.fills[k], rows / (node.rows || 1)])
        : [[node.fill[0], node.fill[1]]];
      let begin = x;
      for (const [fill, share] of parts) {
        if (share * width >= 0.3) bars.push(make("rect", { fill, x: begin, y, width: share * width, height: BAR }));
        begin += share * width;
      }
      return bars;
    }

    function drawFold(node, x, y) {
      const sign = isOpen(node) ? "M-4 0H4" : "M-4 0H4M0 -4V4";
      const group = make("g", { class: "fold", transform: `translate(${x} ${y})` },
        make("circle", { class: "reach", r: 14 }), make("circle", { r: 8 }), make("path", { d: sign }));
      group.addEventListener("click", (event) => { event.stopPropagation(); toggle(node); });
      return group;
    }

    // What is drawn anew only where it has changed: between the press and the release of a button it must stay.
    function paint(item, node, place, kind) {
      const look = [kind, place.width, place.indent, isTest(node), isOpen(node), moreOf(node)].join();
      if (item.look !== look) {
        item.look = look;
        const [shapes, texts] = kind === "list" ? fillRow(node, place) : fillBox(node, place, kind);
        item.group.replaceChildren(make("title", {}, describeNode(node)), ...shapes);
        item.words.replaceChildren(...texts);
      }
      const looks = ["node", kind === "list" ? "row" : "block", isTest(node) ? "test" : "leaf"];
      if (isTest(node) && !isOpen(node)) looks.push("folded");
      if (node.id === current) looks.push("chosen");
      if (hits.includes(node)) looks.push("hit");
      item.group.setAttribute("class", looks.join(" "));
      item.group.setAttribute("aria-label", describeNode(node));
      item.group.setAttribute("aria-level", node.depth + 1);
      item.group.setAttribute("aria-selected", String(node.id === current));
      item.group.setAttribute("tabindex", node.id === current ? 0 : -1);
      if (isTest(node)) item.group.setAttribute("aria-expanded", String(isOpen(node)));
      else item.group.removeAttribute("aria-expanded");
    }

    function fillRow(node, { width, height, indent }) {
      const bar = width < 420 ? 44 : 120, count = width < 420 ? 42 : 64;
      const left = indent + (isTest(node) ? 14 : 2), right = width - bar - count - 12;
      const branch = node.branch ? cutText(node.branch, (right - left) * 0.6, 11) : "";
      const begin = left + (branch ? widthOf(branch, 11) + 9 : 0);
      const title = cutText(isTest(node) ? `${node.test}?` : node.answer, right - begin, 12.5, 650);
      const shapes = [make("rect", { class: "box", width, height: height - 2, rx: 3 }), ...drawBar(node, width - bar - 2, 11, bar)];
      if (isTest(node)) shapes.push(drawFold(node, indent, 14));
      return [shapes, [
        write(branch, "more", left, 19),
        write(title, "name", begin, 19),
        write(number(node.rows), "more", width - bar - 12, 19, "end"),
      ]];
    }

    function fillBox(node, { width, height }, kind) {
      const box = { class: "box", width, height, rx: 5 };
      if (!isTest(node)) box.stroke = node.parts ? story.fills[node.parts.reduce((a, b) => (b[1] > a[1] ? b : a))[0]] : node.fill[0];
      const shapes = [make("rect", box), ...drawBar(node, PAD, height - BAR - 7, width - 2 * PAD)];
      const texts = [
        write(cutText(titleOf(node), width - 2 * PAD, 12.5, 650), "name", width / 2, 18, "middle"),
        write(cutText(moreOf(node), width - 2 * PAD, 11), "more", width / 2, 33, "middle"),
      ];
      if (kind === "down") texts.push(write(cutText(node.branch, 130, 11), "label", width / 2, -7, "middle"));
      else texts.push(write(cutText(node.branch, 120, 11), "label", -6, height / 2 + 4, "end"));
      if (isTest(node)) shapes.push(kind === "down" ? drawFold(node, width / 2, height) : drawFold(node, width, height / 2));
      return [shapes, texts];
    }

    function bend(from, to, a, b, kind) {
      if (kind === "list") {
        const x0 = from.x + a.indent, y0 = from.y + 22, x1 = to.x + b.indent, y1 = to.y + 14;
        return `M${x0} ${y0}V${y1 - 5}Q${x0} ${y1} ${x0 + 5} ${y1}H${x1}`;
      }
      if (kind === "down") {
        const x0 = from.x + a.width / 2, y0 = from.y + a.height, x1 = to.x + b.width / 2, y1 = to.y;
        const middle = y0 + (y1 - LABEL - y0) * 0.6;
        return `M${x0} ${y0}C${x0} ${middle} ${x1} ${y1 - LABEL - (middle - y0) * 0.6} ${x1} ${y1 - LABEL}`;
      }
      const x0 = from.x + a.width, y0 = from.y + a.height / 2, x1 = to.x - (b.room || 0) - 10, y1 = to.y + b.height / 2;
      return `M${x0} ${y0}C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}H${to.x - (b.label || 0) - 10}`;
    }

    function draw({ isStill = false } = {}) {
      chooseUnfolded();
      const visible = listVisible();
      if (!visible.includes(nodes[current])) {
        current = pathTo(nodes[current]).filter((node) => visible.includes(node)).pop().id;
      }
      const { kind, places, width, height } = choosePlaces(visible);
      const way = new Set(pathTo(nodes[current]));
      const before = new Map([...shown].map(([node, item]) => [node, item.at]));
      const nearest = (node, among) => pathTo(node).reverse().find((one) => among.has(one));
      for (const node of visible) {
        const place = places.get(node);
        let item = shown.get(node);
        if (!item) {
          const origin = before.get(nearest(node, before)) || place;
          item = { group: make("g", { role: "treeitem" }), words: make("g"), at: { x: origin.x, y: origin.y, alpha: before.size ? 0 : 1 } };
          if (node.parent >= 0) item.path = make("path", {});
          listen(item.group, node);
          shown.set(node, item);
        }
        Object.assign(item, { from: { ...item.at }, to: { x: place.x, y: place.y, alpha: 1 }, place, isGone: false });
        paint(item, node, place, kind);
        if (item.path) {
          const thick = THIN + ((kind === "list" ? THICK / 3 : THICK) - THIN) * (node.rows / nodes[0].rows);
          item.path.setAttribute("class", way.has(node) && current ? "branch way" : "branch");
          item.path.setAttribute("stroke-width", thick.toFixed(2));
        }
      }
      for (const [node, item] of shown) {
        if (places.has(node)) continue;
        const goal = places.get(nearest(node, places));
        Object.assign(item, { from: { ...item.at }, to: { x: goal.x, y: goal.y, alpha: 0 }, isGone: true });
      }
      arrange(boxes, visible.map((node) => shown.get(node).group)); // in the order of reading
      words.append(...visible.map((node) => shown.get(node).words));
      branches.append(...visible.filter((node) => node.parent >= 0).sort((a, b) => b.rows - a.rows).map((node) => shown.get(node).path));
      const room = view.clientWidth - 20;
      scale = (kind === "list" ? 1 : Math.min(1.15, Math.max(room / width, 0.2))) * zoom;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width * scale);
      svg.setAttribute("height", height * scale);
      view.classList.toggle("grab", width * scale > room + 20);
      const isCalm = isStill || matchMedia("(prefers-reduced-motion: reduce)").matches || !before.size;
      cancelAnimationFrame(frame);
      if (isCalm) move(1, kind);
      else {
        const start = performance.now();
        const turn = (now) => {
          const t = Math.min((now - start) / TIME, 1);
          move(t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t), kind);
          if (t < 1) frame = requestAnimationFrame(turn);
        };
        frame = requestAnimationFrame(turn);
      }
      for (const button of document.querySelectorAll("[data-layout]")) {
        button.setAttribute("aria-pressed", String(button.dataset.layout === kind));
      }
      describe();
      const n = story.steps[step][0], ends = visible.filter((node) => !below(node).length).length;
      const note = ends < n ? `${ends} ends are shown of ${n} leaves: smaller subtrees are folded.` : "";
      if (find("folded").textContent !== note) find("folded").textContent = note;
    }

    // Puts children in order without moving those that are: an element that is moved loses the focus.
    function arrange(parent, children) {
      let before = parent.firstChild;
      for (const child of children) {
        while (before && !children.includes(before)) before = before.nextSibling;
        if (before === child) before = before.nextSibling;
        else parent.insertBefore(child, before);
      }
    }

    function move(t, kind) {
      for (const item of shown.values()) {
        const { from, to } = item;
        item.at = { x: from.x + (to.x - from.x) * t, y: from.y + (to.y - from.y) * t, alpha: from.alpha + (to.alpha - from.alpha) * t };
        for (const part of [item.group, item.words]) {
          part.setAttribute("transform", `translate(${item.at.x.toFixed(1)} ${item.at.y.toFixed(1)})`);
          part.setAttribute("opacity", item.at.alpha);
        }
      }
      for (const [node, item] of shown) {
        if (!item.path) continue;
        const parent = shown.get(nodes[node.parent]);
        item.path.setAttribute("d", bend(parent.at, item.at, parent.place, item.place, kind));
        item.path.setAttribute("opacity", item.at.alpha);
      }
      if (t < 1) return;
      for (const [node, item] of [...shown]) {
        if (!item.isGone) continue;
        item.group.remove();
        item.words.remove();
        if (item.path) item.path.remove();
        shown.delete(node);
      }
    }

    // --- what is known of one node ---

    const html = (name, ...inside) => { const e = document.createElement(name); e.append(...inside); return e; };

    // The rows of a node along the feature that it tests, as bars of classes or shades, and the cut.
    function drawPicture(node) {
      const [names, cut, share, bins, missing, isNumber] = node.picture;
      const wide = 340, tall = 84, low = 18, step = wide / Math.max(bins.length, 1);
      const total = (bin) => bin.reduce((all, part) => all + part[1], 0);
      const most = Math.max(...bins.map(total), 1);
      const shapes = [];
      bins.forEach((bin, k) => {
        let y = tall;
        for (const [what, rows] of bin) {
          const height = (rows / most) * (tall - 4);
          y -= height;
          shapes.push(make("rect", { fill: node.parts ? story.fills[what] || "#999999" : what, x: k * step + 0.5, y, width: Math.max(step - 1, 0.5), height }));
        }
      });
      const at = share * wide;
      shapes.push(make("line", { class: "base", x1: 0, x2: wide, y1: tall, y2: tall }),
        make("line", { class: "cut", x1: at, x2: at, y1: 0, y2: tall + 4 }));
      if (isNumber) {
        const half = widthOf(cut, 11, 650) / 2 + 6;
        if (at > half + widthOf(names[0], 11)) shapes.push(write(names[0], "more", 0, tall + low - 4));
        if (at < wide - half - widthOf(names[1], 11)) shapes.push(write(names[1], "more", wide, tall + low - 4, "end"));
        const x = Math.min(Math.max(at, half - 6), wide - half + 6);
        shapes.push(write(cut, "at", x, tall + low - 4, "middle"));
      } else {
        names.forEach((name, k) => shapes.push(write(cutText(name, step - 4, 11), "more", (k + 0.5) * step, tall + low - 4, "middle")));
      }
      const where = isNumber ? `from ${names[0]} to ${names[1]}, cut at ${cut}`
        : `levels of the first branch: ${names.slice(0, Math.round(share * names.length)).join(", ")}`;
      const label = `Rows of this node by ${node.test}, ${where}`;
      const drawn = html("div", make("svg", { class: "rows", viewBox: `0 -2 ${wide} ${tall + low + 2}`, role: "img", "aria-label": label }, ...shapes));
      if (missing) drawn.append(html("p", `${plural(missing, "row")} without a value`));
      return drawn;
    }

    let described = "";
    function describe() {
      const node = nodes[current], way = pathTo(node);
      const key = [node.id, isTest(node), countLeaves(node)].join();
      if (key === described) return; // what a screen reader has read is not read again
      described = key;
      const rules = way.slice(1).map((one) => html("li", `${nodes[one.parent].test} ${one.branch}`));
      const left = html("div", html("h3", isTest(node) ? `Splits on ${node.test}` : `Predicts ${node.answer}`));
      if (rules.length) left.append(html("p", "Rows come here by"), html("ol", ...rules));
      else left.append(html("p", "The root: every row comes here."));
      if (isTest(node) && node.picture) left.append(drawPicture(node));
      if (isTest(node)) left.append(html("p", `As a leaf it would predict ${node.answer}; below it are ${leaves(countLeaves(node))}.`));
      const right = html("div", html("p", html("strong", plural(node.rows, "row")), `, ${percent(node.rows / nodes[0].rows)} of all`));
      if (node.parts) {
        const first = node.parts.slice().sort((a, b) => b[1] - a[1]).slice(0, 8), all = node.rows || 1;
        const lines = first.map(([k, rows]) => {
          const name = html("th", story.classes[k]), count = html("td", number(rows)), share = html("td", percent(rows / all));
          name.scope = "row";
          count.className = share.className = "number";
          const bar = make("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
            make("rect", { class: "track", width: 100, height: 8 }),
            make("rect", { fill: story.fills[k], width: (100 * rows) / all, height: 8 }));
          return html("tr", name, count, share, html("td", bar));
        });
        right.append(html("table", html("tbody", ...lines)));
        if (node.parts.length > 8) right.append(html("p", `and ${plural(node.rows - sum(first), "row")} of other classes`));
      } else right.append(html("p", `mean of ${story.target}: ${node.answer}`));
      panel.replaceChildren(left, right);
    }

    function select(node, { isFocused = true } = {}) {
      current = node.id;
      draw();
      const { group } = shown.get(node);
      if (isFocused) group.focus({ preventScroll: true });
      const place = shown.get(node).to, box = shown.get(node).place;
      const x = place.x * scale, y = place.y * scale; // within the view alone: the page stays where it is
      if (x < view.scrollLeft) view.scrollLeft = x - 20;
      if (x + box.width * scale > view.scrollLeft + view.clientWidth) view.scrollLeft = x + box.width * scale - view.clientWidth + 20;
      if (y < view.scrollTop) view.scrollTop = y - 20;
      if (y + box.height * scale > view.scrollTop + view.clientHeight) view.scrollTop = y + box.height * scale - view.clientHeight + 20;
    }

    function toggle(node) {
      if (!isTest(node)) return;
      choices.set(node, !isOpen(node));
      select(node);
    }

    function listen(group, node) {
      group.addEventListener("click", () => select(node));
      group.addEventListener("dblclick", () => toggle(node));
      group.addEventListener("focus", () => { if (current !== node.id) select(node); });
      group.addEventListener("keydown", (event) => {
        const visible = listVisible(), place = visible.indexOf(node);
        const goals = {
          ArrowDown: visible[place + 1], ArrowUp: visible[place - 1], Home: visible[0], End: visible[visible.length - 1],
        };
        if (event.key === "Enter" || event.key === " ") toggle(node);
        else if (event.key === "ArrowRight" && isTest(node)) { if (isOpen(node)) select(node.children[0]); else toggle(node); }
        else if (event.key === "ArrowLeft") { if (isOpen(node)) toggle(node); else if (node.parent >= 0) select(nodes[node.parent]); }
        else if (goals[event.key]) select(goals[event.key]);
        else return;
        event.preventDefault();
      });
    }

    // --- the slider along the pruning path ---

    function describeStep(which) {
      const [n, error, spread, own] = story.steps[which];
      const validated = error === null ? `${story.measure} not validated`
        : `${story.measure} ${error}${spread === null ? "" : ` ± ${spread}`}`;
      return [leaves(n), validated, own];
    }

    function setStep(next) {
      step = next;
      slider.value = last - step;
      const [n, validated, own] = describeStep(step);
      slider.setAttribute("aria-valuetext", `${n}, ${validated}`);
      caption.replaceChildren(html("strong", n), `: cross-validated ${validated}, ${own} on the training rows`);
      const mark = find("now");
      const x = `${last ? (100 * (last - step)) / last : 0}%`;
      mark.querySelector("line").setAttribute("x1", x);
      mark.querySelector("line").setAttribute("x2", x);
      const ring = mark.querySelector("circle"), y = story.heights[step];
      ring.setAttribute("cx", x);
      if (y !== null) ring.setAttribute("cy", y);
      for (const button of document.querySelectorAll("[data-step]")) {
        button.setAttribute("aria-pressed", String(Number(button.dataset.step) === step));
      }
      draw();
    }

    slider.addEventListener("input", () => setStep(last - Number(slider.value)));
    for (const button of document.querySelectorAll("[data-step]")) {
      button.addEventListener("click", () => setStep(Number(button.dataset.step)));
    }

    // --- tools ---

    for (const button of document.querySelectorAll("[data-layout]")) {
      button.addEventListener("click", () => { wanted = button.dataset.layout; zoom = 1; draw(); });
    }
    const setZoom = (next) => { zoom = Math.min(Math.max(next, 0.3), 6); draw({ isStill: true }); };
    find("in").addEventListener("click", () => setZoom(zoom * 1.25));
    find("out").addEventListener("click", () => setZoom(zoom / 1.25));
    find("fit").addEventListener("click", () => { wanted = "auto"; choices.clear(); setZoom(1); });
    find("all").addEventListener("click", () => { for (const node of byRows) choices.set(node, true); draw(); });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      setZoom(zoom * Math.exp(-event.deltaY / 300));
    }, { passive: false });

    let held = null;
    view.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) held = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
    });
    addEventListener("pointermove", (event) => {
      if (!held) return;
      view.classList.add("held");
      view.scrollLeft = held.left + held.x - event.clientX;
      view.scrollTop = held.top + held.y - event.clientY;
    });
    addEventListener("pointerup", () => { held = null; view.classList.remove("held"); });

    const search = find("search");
    search.addEventListener("input", () => {
      const word = search.value.trim().toLowerCase();
      const matches = (node) => [node.test, node.branch, node.answer].some((text, k) =>
        text && (k !== 2 || !isTest(node)) && (k !== 0 || isTest(node)) && text.toLowerCase().includes(word));
      const alive = nodes.filter((node) => pathTo(node).slice(0, -1).every(isTest));
      hits = word ? alive.filter(matches) : [];
      found.textContent = word ? plural(hits.length, "node") : "";
      draw({ isStill: true });
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !hits.length) return;
      const next = hits[(hits.findIndex((node) => node.id === current) + 1) % hits.length];
      for (const node of pathTo(next).slice(0, -1)) choices.set(node, true);
      select(next, { isFocused: false });
    });

    let width = view.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(view.clientWidth - width) < 2) return;
      width = view.clientWidth;
      draw({ isStill: true });
    }).observe(view);
    addEventListener("beforeprint", () => { isPrinting = true; draw({ isStill: true }); });
    addEventListener("afterprint", () => { isPrinting = false; draw({ isStill: true }); });
    setStep(step);
  }
})();
