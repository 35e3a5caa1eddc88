// The page of `heddle inspect`: a grid of heads, a map that can be zoomed, the same as text or on
// the image, and a table. All numbers are in the page; nothing is loaded.
"use strict";
(() => {
const data = JSON.parse(document.getElementById("attention-data").textContent);
const byId = id => document.getElementById(id);
const state = { layer: data.open[0], head: data.open[1], query: data.open[2], scale: "row" };

// ---- numbers -----------------------------------------------------------------------------------

function floats(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// Where the visible weights of a query begin in exact data: a sum over the queries before it.
for (const mask of data.masks) {
  mask.start = [0];
  mask.first.forEach((first, i) => mask.start.push(mask.start[i] + mask.last[i] - first));
}

// The map of one head: exact weights of all queries or of some, cells for the others.
class HeadMap {
  // `coarse`: cells alone, where the page has them.
  constructor(layer, head, coarse = false) {
    const l = data.layers[layer];
    const own = coarse && l.maps[head].pooled ? { pooled: l.maps[head].pooled } : l.maps[head];
    this.layer = l;
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

const maps = new Map();
function mapOf(layer, head) {
  const key = layer + "/" + head;
  if (!maps.has(key)) maps.set(key, new HeadMap(layer, head));
  return maps.get(key);
}
const current = () => mapOf(state.layer, state.head);
const labels = name => data.tokens[name];
const queryLabels = () => labels(current().layer.queries);
const keyLabels = () => labels(current().layer.keys);
const quoted = s => "“" + s + "”";
const digits = v => v >= 0.0001 ? v.toFixed(4) : v === 0 ? "0" : v.toExponential(2);

// ---- colours -----------------------------------------------------------------------------------

const ramps = {
  light: ["#ffffff", "#d3e4f8", "#74aaea", "#2463b4", "#0b2a58"],
  dark: ["#1e2126", "#233f63", "#2f6db5", "#85bbf7", "#f1f8ff"],
};
const dark = matchMedia("(prefers-color-scheme: dark)");
let ramp = [], hidden = [];

function readTheme() {
  const stops = ramps[dark.matches ? "dark" : "light"]
    .map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)));
  ramp = Array.from({ length: 256 }, (_, i) => {
    const at = i / 255 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((c, k) => Math.round(c + (stops[low + 1][k] - c) * (at - low)));
  });
  hidden = dark.matches ? [42, 46, 53] : [238, 239, 241];
}
const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// 0 to 1. Small weights are many and matter: the square root makes them visible.
function strength(map, i, w) {
  return Math.sqrt(Math.min(state.scale === "row" ? w / map.full(i) : w, 1));
}
const colour = s => ramp[Math.round(s * 255)];
const css = c => `rgb(${c.join(" ")})`;

// Cells [x, x + columns) × [y, y + rows) of a map onto w × h pixels. Where several cells fall on
// one pixel the strongest is shown.
function paint(map, view, w, h) {
  const image = new ImageData(w, h);
  for (let py = 0; py < h; ++py) {
    const i0 = Math.floor(view.y + py * view.rows / h);
    // Cells of a pooled map are larger than pixels: one look is enough.
    const coarse = !map.isExact(Math.min(i0, map.rows - 1));
    const i1 = coarse ? i0 + 1 : Math.max(i0 + 1, Math.floor(view.y + (py + 1) * view.rows / h));
    for (let px = 0; px < w; ++px) {
      const j0 = Math.floor(view.x + px * view.columns / w);
      const j1 = coarse ? j0 + 1 : Math.max(j0 + 1, Math.floor(view.x + (px + 1) * view.columns / w));
      let best = -1;
      for (let i = i0; i < i1 && i < map.rows; ++i)
        for (let j = j0; j < j1 && j < map.columns; ++j) {
          const v = map.value(i, j);
          if (v >= 0) best = Math.max(best, strength(map, i, v));
        }
      const c = best < 0 ? hidden : colour(best), at = 4 * (py * w + px);
      image.data[at] = c[0]; image.data[at + 1] = c[1]; image.data[at + 2] = c[2];
      image.data[at + 3] = 255;
    }
  }
  return image;
}

// ---- the grid ----------------------------------------------------------------------------------

const kThumb = 76;

// A thumbnail needs no more than a weight per pixel.
function paintThumb(canvas, map) {
  const sharp = Math.min(2, devicePixelRatio || 1);
  const w = Math.round(kThumb * sharp), h = w;
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(
    paint(map, { x: 0, y: 0, rows: map.rows, columns: map.columns }, w, h), 0, 0);
}

function buildGrid() {
  const grid = byId("grid");
  const parts = [...new Set(data.layers.map(l => l.part))];
  for (const part of parts) {
    const box = document.createElement("div");
    grid.append(box);
    if (parts.length > 1) {
      const title = document.createElement("h3");
      title.textContent = data.parts[part];
      box.append(title);
    }
    data.layers.forEach((l, layer) => {
      if (l.part !== part) return;
      const row = document.createElement("div");
      row.className = "layer-row";
      const name = document.createElement("span");
      name.className = "layer-name";
      name.textContent = "layer " + l.name.replace(/^.*\./, "");
      row.append(name);
      l.maps.forEach((own, head) => {
        const button = document.createElement("button");
        button.className = "thumb";
        button.dataset.layer = layer;
        button.dataset.head = head;
        const s = l.stats[head];
        button.title = `layer ${l.name}, head ${head}`
          + (s.entropy_bits === undefined ? "" : `: entropy ${s.entropy_bits.toFixed(2)} bits`)
          + (s.distance === undefined ? "" : `, distance ${s.distance.toFixed(1)}`)
          + (own.exact && own.exact.count === l.rows ? "" : " (pooled)");
        button.setAttribute("aria-label", button.title);
        button.append(document.createElement("canvas"));
        button.addEventListener("click", () => open(layer, head));
        row.append(button);
      });
      box.append(row);
    });
  }
}

function paintGrid() {
  for (const b of document.querySelectorAll(".thumb"))
    paintThumb(b.firstChild, new HeadMap(+b.dataset.layer, +b.dataset.head, true));
}

// ---- the map -----------------------------------------------------------------------------------

const canvas = byId("map");
const kFont = "12px system-ui, sans-serif";
const margin = { left: 118, top: 96, right: 8, bottom: 8 };  // left and top as the names need
const view = { x: 0, y: 0, rows: 1, columns: 1 };  // in cells
let plot = { w: 1, h: 1 };                          // in CSS pixels
let pointed = null;                                 // the cell under the pointer

function fit() {
  const map = current();
  Object.assign(view, { x: 0, y: 0, rows: map.rows, columns: map.columns });
}

function longest(names, most) {
  const g = canvas.getContext("2d");
  g.font = kFont;
  return Math.ceil(Math.min(most, 14 + Math.max(...names.slice(0, 512).map(n => g.measureText(n).width))));
}

// Cells are square as long as the page is wide and high enough for them.
function layOut() {
  margin.left = Math.max(longest(queryLabels(), 130), 48);
  margin.top = Math.max(longest(keyLabels(), 110), 48);
  const map = current();
  const room = Math.max(canvas.parentElement.clientWidth - margin.left - margin.right, 160);
  const cell = Math.max(Math.min(room / map.columns, 640 / map.rows, 34), 0.05);
  plot.w = Math.round(Math.min(room, Math.max(cell * map.columns, 160)));
  plot.h = Math.round(Math.max(cell * map.rows, 120));
  const sharp = devicePixelRatio || 1;
  const w = plot.w + margin.left + margin.right, h = plot.h + margin.top + margin.bottom;
  canvas.style.width = w + "px";
  canvas.style.height = h + "px";
  canvas.width = Math.round(w * sharp);
  canvas.height = Math.round(h * sharp);
}

function clampView() {
  const map = current();
  view.rows = Math.min(Math.max(view.rows, Math.min(3, map.rows)), map.rows);
  view.columns = Math.min(Math.max(view.columns, Math.min(3, map.columns)), map.columns);
  view.x = Math.min(Math.max(view.x, 0), map.columns - view.columns);
  view.y = Math.min(Math.max(view.y, 0), map.rows - view.rows);
}

function zoom(factor, fx = 0.5, fy = 0.5) {
  const cx = view.x + fx * view.columns, cy = view.y + fy * view.rows;
  view.rows /= factor;
  view.columns /= factor;
  clampView();
  view.x = cx - fx * view.columns;
  view.y = cy - fy * view.rows;
  clampView();
  draw();
}

function shortened(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  while (text.length > 1 && g.measureText(text + "…").width > room) text = text.slice(0, -1);
  return text + "…";
}

// Tokens where there is room for a line of text, numbers at intervals where there is none.
function axis(g, names, first, count, pixels, put) {
  const size = pixels / count;
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find(n => n * size >= 13) ?? 1e4;
  for (let i = Math.ceil(Math.max(first - 0.5, 0) / step) * step; i < Math.min(first + count, names.length); i += step) {
    const at = (i + 0.5 - first) * size;
    if (at < 0 || at > pixels) continue;
    put(step === 1 ? names[i] : String(i), at, i);
  }
}

function drawAxes(g) {
  g.font = kFont;
  g.textBaseline = "middle";
  const soft = ink("--soft"), strong = ink("--ink");
  g.textAlign = "right";
  axis(g, queryLabels(), view.y, view.rows, plot.h, (text, at, i) => {
    g.fillStyle = i === state.query || (pointed && i === pointed.i) ? strong : soft;
    g.fillText(shortened(g, text, margin.left - 10), margin.left - 6, margin.top + at);
  });
  g.textAlign = "left";
  axis(g, keyLabels(), view.x, view.columns, plot.w, (text, at, j) => {
    g.fillStyle = pointed && j === pointed.j ? strong : soft;
    g.save();
    g.translate(margin.left + at, margin.top - 6);
    g.rotate(-Math.PI / 2);
    g.fillText(shortened(g, text, margin.top - 10), 0, 0);
    g.restore();
  });
}

const place = (i, j) => ({
  x: margin.left + (j - view.x) * plot.w / view.columns,
  y: margin.top + (i - view.y) * plot.h / view.rows,
  w: plot.w / view.columns,
  h: plot.h / view.rows,
});

function drawMarks(g) {
  g.save();
  g.beginPath();
  g.rect(margin.left - 1, margin.top - 1, plot.w + 2, plot.h + 2);
  g.clip();
  const row = place(state.query, view.x);
  g.strokeStyle = ink("--s1");
  g.lineWidth = 1.5;
  g.strokeRect(margin.left - 2, row.y, plot.w + 4, Math.max(row.h, 2));
  if (pointed) {
    const c = place(pointed.i, pointed.j);
    g.strokeStyle = ink("--ink");
    g.strokeRect(c.x, c.y, Math.max(c.w, 2), Math.max(c.h, 2));
  }
  g.restore();
}

let painted = null;  // what is under the marks: they move with the pointer, it does not

function draw() {
  const sharp = devicePixelRatio || 1;
  painted = paint(current(), view, Math.round(plot.w * sharp), Math.round(plot.h * sharp));
  canvas.dataset.columns = view.columns.toFixed(3);
  overlay();
}

function overlay() {
  const sharp = devicePixelRatio || 1, g = canvas.getContext("2d");
  g.setTransform(1, 0, 0, 1, 0, 0);
  g.clearRect(0, 0, canvas.width, canvas.height);
  g.putImageData(painted, Math.round(margin.left * sharp), Math.round(margin.top * sharp));
  g.setTransform(sharp, 0, 0, sharp, 0, 0);
  g.strokeStyle = ink("--line");
  g.lineWidth = 1;
  g.strokeRect(margin.left - 0.5, margin.top - 0.5, plot.w + 1, plot.h + 1);
  drawAxes(g);
  drawMarks(g);
}

function cellAt(event) {
  const box = canvas.getBoundingClientRect();
  const fx = (event.clientX - box.left - margin.left) / plot.w;
  const fy = (event.clientY - box.top - margin.top) / plot.h;
  if (fx >= 1 || fy < 0 || fy >= 1) return null;  // left of the map lie the names of its rows
  const i = Math.floor(view.y + fy * view.rows), j = Math.floor(view.x + Math.max(fx, 0) * view.columns);
  return { i, j, fx, fy, inside: fx >= 0 };
}

function reading(i, j) {
  const map = current(), q = queryLabels(), k = keyLabels();
  if (map.sees(i, j) && !map.isExact(i)) {
    const p = map.pooled;
    const [a, b] = HeadMap.tokens(HeadMap.cell(i, map.rows, p.rows), map.rows, p.rows);
    const [c, d] = HeadMap.tokens(HeadMap.cell(j, map.columns, p.columns), map.columns, p.columns);
    return `queries ${a} to ${b - 1} give keys ${c} to ${d - 1} the share ${digits(map.value(i, j))} (pooled)`;
  }
  const w = map.value(i, j);
  return `query ${i} ${quoted(q[i])} → key ${j} ${quoted(k[j])}: `
    + (w < 0 ? "hidden by the mask" : digits(w));
}

function say(text) { byId("reading").textContent = text; }

let drag = null;
canvas.addEventListener("pointerdown", event => {
  drag = { x: event.clientX, y: event.clientY, vx: view.x, vy: view.y, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
  if (drag) {
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    drag.moved = drag.moved || Math.hypot(dx, dy) > 4;
    if (drag.moved) {
      view.x = drag.vx - dx * view.columns / plot.w;
      view.y = drag.vy - dy * view.rows / plot.h;
      clampView();
      draw();
      return;
    }
  }
  const at = cellAt(event);
  pointed = at && at.inside ? at : null;
  if (pointed) say(reading(pointed.i, pointed.j));
  overlay();
});
canvas.addEventListener("pointerup", event => {
  const at = cellAt(event);
  if (drag && !drag.moved && at) choose(at.i);
  drag = null;
});
canvas.addEventListener("pointercancel", () => { drag = null; });
canvas.addEventListener("pointerleave", () => { pointed = null; overlay(); });
// A wheel that always zoomed would hold fast whoever scrolls the page.
canvas.addEventListener("wheel", event => {
  if (document.activeElement !== canvas && !event.ctrlKey) return;
  event.preventDefault();
  const at = cellAt(event);
  zoom(Math.exp(-event.deltaY * 0.0025), at ? Math.max(at.fx, 0) : 0.5, at ? at.fy : 0.5);
}, { passive: false });
canvas.addEventListener("keydown", event => {
  const by = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 }[event.key];
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (by) zoom(by);
  else if (step) choose(Math.min(Math.max(state.query + step, 0), current().rows - 1));
  else if (event.key === "0") { fit(); draw(); }
  else return;
  event.preventDefault();
});
for (const b of document.querySelectorAll("[data-zoom]"))
  b.addEventListener("click", () => {
    if (b.dataset.zoom === "fit") { fit(); draw(); } else zoom(+b.dataset.zoom);
  });

window.heddleInspect = { data, state, current, labels, queryLabels, keyLabels, quoted, digits,
  strength, colour, css, ink, say, reading, choose: i => choose(i), open: (l, h) => open(l, h) };

// ---- choosing ----------------------------------------------------------------------------------

const watchers = [];  // views of the chosen query and head: text, image, table
window.heddleInspect.watch = watcher => watchers.push(watcher);

function choose(query) {
  state.query = query;
  overlay();
  for (const w of watchers) w();
}

function fillSelects() {
  const layers = byId("layer"), heads = byId("head-number");
  if (layers.options.length === 0)
    data.layers.forEach((l, i) => layers.add(new Option(l.name, i)));
  heads.replaceChildren();
  data.layers[state.layer].maps.forEach((_, h) => heads.add(new Option(h, h)));
  layers.value = state.layer;
  heads.value = state.head;
}

function open(layer, head) {
  const before = current();
  state.layer = layer;
  state.head = Math.min(head, data.layers[layer].maps.length - 1);
  const map = current(), same = map.rows === before.rows && map.columns === before.columns;
  state.query = Math.min(state.query, map.rows - 1);
  pointed = null;
  if (!same) fit();
  fillSelects();
  byId("head-title").textContent = `${data.parts[map.layer.part]}, layer ${map.layer.name.replace(/^.*\./, "")}, head ${state.head}`;
  byId("exactness").textContent = map.to - map.from === map.rows
    ? "All weights of this head are in the page, as the model computed them."
    : (map.to > map.from ? `Queries ${map.from} to ${map.to - 1} are exact; the others are pooled` : "This head is pooled")
      + `: a cell is the mean share of attention that its queries give to all of its keys (${map.pooled.rows} × ${map.pooled.columns} cells).`;
  for (const b of document.querySelectorAll(".thumb"))
    b.classList.toggle("open", +b.dataset.layer === state.layer && +b.dataset.head === state.head);
  layOut();
  draw();
  for (const w of watchers) w();
}

byId("layer").addEventListener("change", e => open(+e.target.value, state.head));
byId("head-number").addEventListener("change", e => open(state.layer, +e.target.value));
byId("scale").addEventListener("change", e => {
  state.scale = e.target.value;
  paintGrid();
  draw();
  for (const w of watchers) w();
});

function redrawAll() {
  readTheme();
  paintGrid();
  layOut();
  draw();
  for (const w of watchers) w();
}

window.heddleInspect.start = () => {
  readTheme();
  buildGrid();
  paintGrid();
  fit();
  open(state.layer, state.head);
  dark.addEventListener("change", redrawAll);
  addEventListener("resize", () => { layOut(); draw(); });
};
})();
