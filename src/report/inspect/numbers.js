// The numbers of the page of `heddle inspect`: one model on one input, or two beside each other. All
// numbers are in the page; nothing is loaded.
"use strict";
(() => {
const page = JSON.parse(document.getElementById("attention-data").textContent);
const settings = { scale: page.sides.length > 1 ? "one" : "row" };

// A text of the page's language with its places $1, $2, … filled.
const words = (name, ...values) =>
  page.words[name].replace(/\$(\d)/g, (_, n) => values[n - 1]);

// ---- numbers -----------------------------------------------------------------------------------

function floats(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// The map of one head: exact weights of all queries or of some, cells for the others.
class HeadMap {
  // `coarse`: cells alone, where the page has them.
  constructor(data, layer, head, coarse = false) {
    const l = data.layers[layer];
    const own = coarse && l.maps[head].pooled ? { pooled: l.maps[head].pooled } : l.maps[head];
    this.layer = l;
    this.head = head;
    this.rows = l.rows;
    this.columns = l.columns;
    this.mask = data.masks[l.mask];
    this.from = own.exact ? own.exact.first : 0;
    this.to = own.exact ? own.exact.first + own.exact.count : 0;
    this.exact = own.exact ? floats(own.exact.data) : null;
    this.pooled = own.pooled ? { ...own.pooled, data: floats(own.pooled.data) } : null;
    this.fulls = new Float64Array(this.rows);
  }
  sees(i, j) { return j >= this.mask.first[i] && j < this.mask.last[i]; }
  isExact(i) { return i >= this.from && i < this.to; }
  // The cell of a pooled map that token i of n lies in, and the tokens of that cell.
  static cell(i, n, cells) { return Math.floor(i * cells / n); }
  static tokens(cell, n, cells) {
    return [Math.ceil(cell * n / cells), Math.ceil((cell + 1) * n / cells)];
  }
  // A weight; for queries without exact ones the share of the cell; -1 where the mask hides it.
  value(i, j) {
    if (!this.sees(i, j)) return -1;
    if (this.isExact(i))
      return this.exact[this.mask.start[i] - this.mask.start[this.from] + j - this.mask.first[i]];
    const p = this.pooled;
    return p.data[HeadMap.cell(i, this.rows, p.rows) * p.columns
      + HeadMap.cell(j, this.columns, p.columns)];
  }
  // The weight that has the full colour in a row: the row's largest, but not less than eight times
  // equal weights, so that a row that looks everywhere looks pale.
  full(i) {
    if (this.fulls[i] === 0) {
      let most = 0;
      for (let j = this.mask.first[i]; j < this.mask.last[i]; ++j)
        most = Math.max(most, this.value(i, j));
      const count = this.isExact(i) ? this.mask.last[i] - this.mask.first[i] : this.pooled.columns;
      this.fulls[i] = Math.min(Math.max(most, 8 / count), 1);
    }
    return this.fulls[i];
  }
}

const equal = (a, b) => a === b || (a.length === b.length && a.every((x, i) => x === b[i]));

// A model on an input: its maps, and which head and query of it is looked at.
class Side {
  constructor(data, index) {
    this.data = data;
    this.index = index;
    this.name = data.name;
    this.state = { layer: data.open[0], head: data.open[1], query: data.open[2] };
    this.maps = new Map();
    // Where the visible weights of a query begin in exact data: a sum over the queries before it.
    for (const mask of data.masks) {
      mask.start = [0];
      mask.first.forEach((first, i) => mask.start.push(mask.start[i] + mask.last[i] - first));
    }
  }
  map(layer, head) {
    const key = layer + "/" + head;
    if (!this.maps.has(key)) this.maps.set(key, new HeadMap(this.data, layer, head));
    return this.maps.get(key);
  }
  current() { return this.map(this.state.layer, this.state.head); }
  queries() { return this.data.tokens[this.current().layer.queries]; }
  keys() { return this.data.tokens[this.current().layer.keys]; }
}

const sides = page.sides.map((data, i) => new Side(data, i));

// Whether the open maps have the same tokens on both axes: then they can be subtracted.
const comparable = () => sides.length === 2 && equal(sides[0].queries(), sides[1].queries())
  && equal(sides[0].keys(), sides[1].keys());

// ---- colours -----------------------------------------------------------------------------------

const ramps = {
  light: ["#ffffff", "#d3e4f8", "#74aaea", "#2463b4", "#0b2a58"],
  dark: ["#1e2126", "#233f63", "#2f6db5", "#85bbf7", "#f1f8ff"],
};
// Less in the second: the other half of the scale of differences.
const lesser = {
  light: ["#ffffff", "#fbe0cd", "#eda06c", "#b5480f", "#5c2304"],
  dark: ["#1e2126", "#5a3018", "#ab5420", "#f0a06c", "#fff3e9"],
};
const dark = matchMedia("(prefers-color-scheme: dark)");
let ramp = [], lesserRamp = [], hidden = [];

function interpolated(colours) {
  const stops = colours.map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const at = i / 255 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
  });
}

// A printed page is light, whatever the screen is.
let printing = false;
function readTheme() {
  const theme = dark.matches && !printing ? "dark" : "light";
  ramp = interpolated(ramps[theme]);
  lesserRamp = interpolated(lesser[theme]);
  hidden = theme === "dark" ? [42, 46, 53] : [238, 239, 241];
}

// 0 to 1. Small weights are many and matter: the square root makes them visible. Two maps of the
// same tokens have one scale: by row it is that of the larger.
function strength(map, i, w) {
  if (settings.scale !== "row") return Math.sqrt(Math.min(w, 1));
  const open = sides.map(s => s.current());
  const full = open.includes(map) && comparable() ? Math.max(...open.map(m => m.full(i))) : map.full(i);
  return Math.sqrt(Math.min(w / full, 1));
}

// Strengths from -1 (less in the second) to 1; null is hidden.
const colour = s => s === null ? hidden : (s < 0 ? lesserRamp : ramp)[Math.round(Math.abs(s) * 255)];

window.heddleInspect = { page, settings, words, sides, HeadMap, comparable, readTheme, strength, colour,
  dark, print: on => { printing = on; readTheme(); },
  css: c => `rgb(${c.join(" ")})`,
  ink: name => getComputedStyle(document.documentElement).getPropertyValue(name).trim(),
  quoted: s => "“" + s + "”",
  digits: v => Math.abs(v) >= 0.0001 ? v.toFixed(4) : v === 0 ? "0" : v.toExponential(2),
  state: sides[0].state, current: () => sides[0].current() };
})();
