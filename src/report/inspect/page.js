// The grid of heads, the open maps, and what follows when a head or a query is chosen.
"use strict";
(() => {
const { page, settings, words, sides, HeadMap, comparable, readTheme, dark, Weights, Difference,
  MapView, paint } = window.heddleInspect;
const byId = id => document.getElementById(id);
const made = (tag, className, text) => {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
};
// The first side's elements have plain names.
const ofSide = (name, side) => side.index === 0 ? name : `${name}-${side.index}`;

// ---- the grid ----------------------------------------------------------------------------------

const kThumb = 76;

// A thumbnail needs no more than a weight per pixel.
function paintThumb(canvas, side, layer, head) {
  const map = new HeadMap(side.data, layer, head, true);
  const source = Object.create(new Weights(side), { map: { value: map } });
  const w = Math.round(kThumb * Math.min(2, devicePixelRatio || 1));
  canvas.width = canvas.height = w;
  canvas.getContext("2d").putImageData(
    paint(source, { x: 0, y: 0, rows: map.rows, columns: map.columns }, w, w), 0, 0);
}

function thumb(side, layer, head) {
  const l = side.data.layers[layer], s = l.stats[head], own = l.maps[head];
  const button = made("button", "thumb");
  Object.assign(button.dataset, { side: side.index, layer, head });
  const told = [words("head_name", l.name, head)];
  if (s.entropy_bits !== undefined) told.push(words("entropy_told", s.entropy_bits.toFixed(2)));
  if (s.distance !== undefined) told.push(words("distance_told", s.distance.toFixed(1)));
  if (!own.exact || own.exact.count !== l.rows) told.push(words("is_pooled"));
  button.title = told.join(" · ");
  button.setAttribute("aria-label", button.title);
  button.append(document.createElement("canvas"));
  button.addEventListener("click", () => open(side, layer, head));
  return button;
}

// Where a decoder looks at a source, that is what people come for: it is shown first.
const order = ["cross", "self", "encoder", "decoder"];

function buildGrid(side) {
  const box = made("div", "grid-side");
  if (sides.length > 1) box.append(made("h3", "side-name", side.name));
  const parts = [...new Set(side.data.layers.map(l => l.part))]
    .sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const all = made("div", "parts");
  for (const part of parts) {
    const own = made("div");
    if (parts.length > 1) own.append(made("h3", "", page.parts[part]));
    side.data.layers.forEach((l, layer) => {
      if (l.part !== part) return;
      const row = made("div", "layer-row");
      row.append(made("span", "layer-name", words("layer_name", l.name.replace(/^.*\./, ""))));
      const thumbs = made("div", "thumbs");
      thumbs.append(...l.maps.map((_, head) => thumb(side, layer, head)));
      row.append(thumbs);
      own.append(row);
    });
    all.append(own);
  }
  box.append(all);
  byId("grid").append(box);
}

function paintGrid() {
  for (const b of document.querySelectorAll(".thumb"))
    paintThumb(b.firstChild, sides[b.dataset.side], +b.dataset.layer, +b.dataset.head);
}

// ---- the maps ----------------------------------------------------------------------------------

const say = text => { byId("reading").textContent = text; };
const tip = byId("tip");

// Beside the pointer, and inside of the window.
function showTip(text, event) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - w - 4)) + "px";
  tip.style.top = (event.clientY + 22 + h > innerHeight ? event.clientY - h - 14 : event.clientY + 22) + "px";
}

const views = [];
let differences = null;

const alike = (a, b) => a.source.rows === b.source.rows && a.source.columns === b.source.columns;
const shown = () => views.filter(v => !v.canvas.closest("figure").hidden);

const heard = side => ({
  choose: i => choose(side, i),
  // Maps of one shape are zoomed and moved together.
  moved: from => {
    for (const v of shown()) {
      if (v !== from && !alike(v, from)) continue;
      Object.assign(v.view, from.view);
      const whole = v.view.columns === v.source.columns && v.view.rows === v.source.rows;
      v.canvas.classList.toggle("zoomed", !whole);
      v.draw();
    }
  },
  pointed: (from, event) => {
    const at = from.pointed;
    for (const v of shown()) {
      if (v !== from) v.pointed = at && comparable() ? at : null;
      v.overlay();
    }
    if (at) say(from.source.reading(at.i, at.j));
    showTip(at && event.pointerType !== "touch" ? from.source.reading(at.i, at.j) : "", event);
  },
});

function figure(id, caption, source, side) {
  const box = made("figure", "map-side"), canvas = made("canvas");
  canvas.id = id;
  canvas.tabIndex = 0;
  canvas.setAttribute("aria-label", words("map_label", caption.textContent));
  box.append(caption, canvas);
  byId("maps").append(box);
  const map = new MapView(canvas, source, side, heard(side));
  views.push(map);
  return map;
}

function labelled(text, select) {
  const label = made("label", "", text + " ");
  label.append(select);
  return label;
}

// A side's head can be chosen by itself; the grid and the table open it on both sides.
function buildMap(side) {
  const caption = made("figcaption"), layer = made("select"), head = made("select");
  layer.id = ofSide("layer", side);
  head.id = ofSide("head-number", side);
  side.data.layers.forEach((l, i) => layer.add(new Option(l.name, i)));
  layer.addEventListener("change", () => open(side, +layer.value, side.state.head, [side]));
  head.addEventListener("change", () => open(side, side.state.layer, +head.value, [side]));
  if (sides.length > 1) caption.append(made("span", "side-name", side.name));
  const chooser = made("span", "controls");
  chooser.append(labelled(words("layer"), layer), labelled(words("head"), head));
  caption.append(chooser);
  figure(ofSide("map", side), caption, new Weights(side), side);
}

function buildDifference() {
  const caption = made("figcaption"), told = made("span", "hint");
  caption.append(made("span", "side-name", words("difference")), told);
  const less = made("b", "less", words("less_in_second")), more = made("b", "more", words("more_in_second"));
  told.append(less, " · ", more);
  differences = figure("map-difference", caption, new Difference(), sides[0]);
}

function layOut() {
  const open = shown();
  if (differences) differences.canvas.closest("figure").hidden = !comparable();
  byId("head").classList.toggle("beside", sides.length === 1);
  for (const v of open) v.canvas.style.width = "0";  // what it had must not hold the page wide
  for (const v of shown())
    v.layOut(v.canvas.closest("figure").clientWidth, Math.max(innerHeight - 170, 300));
}

const drawAll = () => { for (const v of shown()) v.draw(); };

for (const b of document.querySelectorAll("[data-zoom]"))
  b.addEventListener("click", () => {
    const done = new Set();
    for (const v of shown()) {
      if ([...done].some(d => alike(d, v))) continue;  // moves with another
      done.add(v);
      if (b.dataset.zoom !== "fit") { v.zoom(+b.dataset.zoom); continue; }
      v.fit();
      v.heard.moved(v);
    }
  });

// ---- choosing ----------------------------------------------------------------------------------

const watchers = [];  // views of the chosen query and head: text, image, table
const tellWatchers = () => { for (const w of watchers) w(); };

// Of the same tokens the same query is chosen on both sides.
function choose(side, query) {
  const together = comparable() ? sides : [side];
  for (const s of together) s.state.query = query;
  for (const v of shown()) v.overlay();
  tellWatchers();
}

function exactness(map) {
  if (map.to - map.from === map.rows) return words("all_exact");
  const cells = [map.pooled.rows, map.pooled.columns];
  return map.to > map.from ? words("some_exact", map.from, map.to - 1, ...cells)
    : words("none_exact", ...cells);
}

function fillSelects(side) {
  const heads = byId(ofSide("head-number", side));
  heads.replaceChildren(...side.data.layers[side.state.layer].maps.map((_, h) => new Option(h, h)));
  byId(ofSide("layer", side)).value = side.state.layer;
  heads.value = side.state.head;
}

function openOn(side, layer, head) {
  const before = side.current();
  side.state.layer = layer;
  side.state.head = Math.min(head, side.data.layers[layer].maps.length - 1);
  const map = side.current();
  side.state.query = Math.min(side.state.query, map.rows - 1);
  if (map.rows !== before.rows || map.columns !== before.columns) views[side.index].fit();
  fillSelects(side);
}

// Two heads that differ are named above their maps.
function title() {
  const all = new Set(sides.map(s => words("head_title", page.parts[s.current().layer.part],
    s.current().layer.name.replace(/^.*\./, ""), s.state.head)));
  return all.size === 1 ? [...all][0] : words("two_heads");
}

// The same head on the other side, where it has one of that name.
function open(side, layer, head, which = sides) {
  const name = side.data.layers[layer].name;
  for (const s of which) {
    const own = s === side ? layer : s.data.layers.findIndex(l => l.name === name);
    if (own >= 0 && (s === side || head < s.data.layers[own].maps.length)) openOn(s, own, head);
  }
  if (comparable()) for (const s of sides) s.state.query = side.state.query;
  for (const v of views) v.pointed = null;
  byId("head-title").textContent = title();
  byId("exactness").textContent = [...new Set(sides.map(s => exactness(s.current())))].join(" ");
  for (const b of document.querySelectorAll(".thumb")) {
    const s = sides[b.dataset.side].state;
    b.classList.toggle("open", +b.dataset.layer === s.layer && +b.dataset.head === s.head);
  }
  layOut();
  if (differences && comparable()) Object.assign(differences.view, views[0].view);
  drawAll();
  tellWatchers();
}

byId("scale").value = settings.scale;
byId("scale").addEventListener("change", e => {
  settings.scale = e.target.value;
  paintGrid();
  drawAll();
  tellWatchers();
});

function redrawAll() {
  readTheme();
  paintGrid();
  layOut();
  drawAll();
  tellWatchers();
}

Object.assign(window.heddleInspect, { made, ofSide, say, choose, showTip,
  open: (layer, head) => open(sides[0], layer, head), openSide: open,
  watch: watcher => watchers.push(watcher),
  start: () => {
    readTheme();
    for (const side of sides) { buildGrid(side); buildMap(side); }
    if (sides.length === 2) buildDifference();
    paintGrid();
    for (const v of views) v.fit();
    // Each side begins with its own head.
    for (const side of sides) open(side, side.state.layer, side.state.head, [side]);
    dark.addEventListener("change", redrawAll);
    addEventListener("resize", () => { layOut(); drawAll(); });
    addEventListener("beforeprint", () => { window.heddleInspect.print(true); redrawAll(); });
    addEventListener("afterprint", () => { window.heddleInspect.print(false); redrawAll(); });
  } });
})();
