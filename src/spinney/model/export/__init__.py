"""Models that leave Python: one form of trees and sums, and a file for each language it is written in."""
