// Maps that can be zoomed, with tokens on both axes.
"use strict";
(() => {
const { sides, words, strength, colour, comparable, ink, quoted, digits, HeadMap } = window.heddleInspect;

// ---- what a map shows --------------------------------------------------------------------------

// Weights of the open head of a side.
class Weights {
  constructor(side) { this.side = side; }
  get map() { return this.side.current(); }
  get rows() { return this.map.rows; }
  get columns() { return this.map.columns; }
  queries() { return this.side.queries(); }
  keys() { return this.side.keys(); }
  coarse(i) { return !this.map.isExact(i); }
  strength(i, j) {
    const w = this.map.value(i, j);
    return w < 0 ? null : strength(this.map, i, w);
  }
  // A cell in words.
  reading(i, j) {
    const map = this.map, q = this.queries(), k = this.keys(), w = map.value(i, j);
    if (map.sees(i, j) && !map.isExact(i)) {
      const p = map.pooled;
      const [a, b] = HeadMap.tokens(HeadMap.cell(i, map.rows, p.rows), map.rows, p.rows);
      const [c, d] = HeadMap.tokens(HeadMap.cell(j, map.columns, p.columns), map.columns, p.columns);
      return words("pooled_reading", a, b - 1, c, d - 1, digits(w));
    }
    return words(w < 0 ? "hidden_reading" : "reading", i, quoted(q[i]), j, quoted(k[j]), digits(w));
  }
}

// The second side's weights less the first's, where both have the same tokens.
class Difference {
  get rows() { return sides[0].current().rows; }
  get columns() { return sides[0].current().columns; }
  queries() { return sides[0].queries(); }
  keys() { return sides[0].keys(); }
  coarse(i) { return sides.every(s => !s.current().isExact(i)); }
  // A weight and the share of a cell are different things: null.
  value(i, j) {
    const [a, b] = sides.map(s => s.current());
    const alike = a.isExact(i) === b.isExact(i)
      && (a.isExact(i) || (a.pooled.rows === b.pooled.rows && a.pooled.columns === b.pooled.columns));
    return alike && a.sees(i, j) && b.sees(i, j) ? b.value(i, j) - a.value(i, j) : null;
  }
  strength(i, j) {
    const d = this.value(i, j);
    return d === null ? null : Math.sign(d) * strength(sides[0].current(), i, Math.abs(d));
  }
  reading(i, j) {
    const d = this.value(i, j), q = quoted(this.queries()[i]), k = quoted(this.keys()[j]);
    if (d === null) return words("no_difference", i, q, j, k);
    return words("difference_reading", i, q, j, k, ...sides.map(s => digits(s.current().value(i, j))),
      (d > 0 ? "+" : "") + digits(d));
  }
}

// Cells [x, x + columns) × [y, y + rows) of a map onto w × h pixels. Where several cells fall on
// one pixel the strongest is shown.
function paint(source, view, w, h) {
  const image = new ImageData(w, h), rows = source.rows, columns = source.columns;
  for (let py = 0; py < h; ++py) {
    const i0 = Math.floor(view.y + py * view.rows / h);
    // Cells of a pooled map are larger than pixels: one look is enough.
    const coarse = source.coarse(Math.min(i0, rows - 1));
    const i1 = coarse ? i0 + 1 : Math.max(i0 + 1, Math.floor(view.y + (py + 1) * view.rows / h));
    for (let px = 0; px < w; ++px) {
      const j0 = Math.floor(view.x + px * view.columns / w);
      const j1 = coarse ? j0 + 1 : Math.max(j0 + 1, Math.floor(view.x + (px + 1) * view.columns / w));
      let best = null;
      for (let i = i0; i < i1 && i < rows; ++i)
        for (let j = j0; j < j1 && j < columns; ++j) {
          const s = source.strength(i, j);
          if (s !== null && (best === null || Math.abs(s) > Math.abs(best))) best = s;
        }
      const c = colour(best), at = 4 * (py * w + px);
      image.data[at] = c[0]; image.data[at + 1] = c[1]; image.data[at + 2] = c[2];
      image.data[at + 3] = 255;
    }
  }
  return image;
}

// ---- one map on a canvas -----------------------------------------------------------------------

const kLine = 11;      // pixels that the name of a token needs
const kComfort = 14;   // and that it has downwards, where a page can be scrolled
const kLargest = 64;   // of a cell
const font = size => `${size}px system-ui, sans-serif`;

function longest(g, names, most) {
  g.font = font(13);
  return Math.ceil(Math.min(most, 14 + Math.max(...names.slice(0, 512).map(n => g.measureText(n).width))));
}

function shortened(g, text, room) {
  if (g.measureText(text).width <= room) return text;
  while (text.length > 1 && g.measureText(text + "…").width > room) text = text.slice(0, -1);
  return text + "…";
}

// Tokens where there is room for a line of text, numbers at intervals where there is none.
function axis(names, first, count, pixels, put) {
  const size = pixels / count;
  const step = size >= kLine ? 1
    : [2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find(n => n * size >= 14) ?? 1e4;
  for (let i = Math.ceil(Math.max(first - 0.5, 0) / step) * step; i < Math.min(first + count, names.length); i += step) {
    const at = (i + 0.5 - first) * size;
    if (at < 0 || at > pixels) continue;
    put(step === 1 ? names[i] : String(i), at, i);
  }
}

class MapView {
  // `heard`: {choose(i), moved(map), pointed(map, event)}
  constructor(canvas, source, side, heard) {
    Object.assign(this, { canvas, source, side, heard });
    this.margin = { left: 118, top: 96, right: 8, bottom: 8 };  // left and top as the names need
    this.view = { x: 0, y: 0, rows: 1, columns: 1 };            // in cells
    this.plot = { w: 1, h: 1 };                                 // in CSS pixels
    this.pointed = null;                                        // the cell under the pointer
    this.painted = null;  // what is under the marks: they move with the pointer, it does not
    this.listen();
  }
  fit() { Object.assign(this.view, { x: 0, y: 0, rows: this.source.rows, columns: this.source.columns }); }

  // Cells are square and as large as the page is wide and the window high; the names of up to 80
  // tokens are worth a map that is higher than the window.
  layOut(room, height) {
    const g = this.canvas.getContext("2d"), m = this.margin, { rows, columns } = this.source;
    m.left = Math.max(longest(g, this.source.queries(), Math.min(140, room / 3)), 40);
    m.top = Math.max(longest(g, this.source.keys(), 140), 40);
    const wide = Math.max(room - m.left - m.right, 120);
    const high = Math.max(height - m.top - m.bottom, Math.min(rows, 80) * kComfort, 240);
    const cell = Math.max(Math.min(wide / columns, high / rows, kLargest), 0.05);
    this.plot.w = Math.round(Math.min(wide, Math.max(cell * columns, 120)));
    this.plot.h = Math.round(Math.max(cell * rows, Math.min(120, rows * kLargest)));
    const sharp = devicePixelRatio || 1;
    const w = this.plot.w + m.left + m.right, h = this.plot.h + m.top + m.bottom;
    this.canvas.style.width = w + "px";
    this.canvas.style.height = h + "px";
    this.canvas.width = Math.round(w * sharp);
    this.canvas.height = Math.round(h * sharp);
  }
  clamp() {
    const v = this.view, { rows, columns } = this.source;
    v.rows = Math.min(Math.max(v.rows, Math.min(3, rows)), rows);
    v.columns = Math.min(Math.max(v.columns, Math.min(3, columns)), columns);
    v.x = Math.min(Math.max(v.x, 0), columns - v.columns);
    v.y = Math.min(Math.max(v.y, 0), rows - v.rows);
  }
  zoom(factor, fx = 0.5, fy = 0.5) {
    const v = this.view, cx = v.x + fx * v.columns, cy = v.y + fy * v.rows;
    v.rows /= factor;
    v.columns /= factor;
    this.clamp();
    v.x = cx - fx * v.columns;
    v.y = cy - fy * v.rows;
    this.clamp();
    this.heard.moved(this);
  }
  place(i, j) {
    const v = this.view, w = this.plot.w / v.columns, h = this.plot.h / v.rows;
    return { x: this.margin.left + (j - v.x) * w, y: this.margin.top + (i - v.y) * h, w, h };
  }
  draw() {
    const sharp = devicePixelRatio || 1;
    this.painted = paint(this.source, this.view, Math.round(this.plot.w * sharp), Math.round(this.plot.h * sharp));
    this.canvas.dataset.columns = this.view.columns.toFixed(3);
    this.overlay();
  }
  overlay() {
    const sharp = devicePixelRatio || 1, g = this.canvas.getContext("2d"), m = this.margin;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.putImageData(this.painted, Math.round(m.left * sharp), Math.round(m.top * sharp));
    g.setTransform(sharp, 0, 0, sharp, 0, 0);
    g.strokeStyle = ink("--line");
    g.lineWidth = 1;
    g.strokeRect(m.left - 0.5, m.top - 0.5, this.plot.w + 1, this.plot.h + 1);
    this.axes(g);
    this.marks(g);
  }
  axes(g) {
    const soft = ink("--soft"), strong = ink("--ink"), m = this.margin, v = this.view, p = this.pointed;
    const size = pixels => Math.max(Math.min(Math.floor(pixels), 13), 10);
    g.textBaseline = "middle";
    g.textAlign = "right";
    g.font = font(size(this.plot.h / v.rows));
    axis(this.source.queries(), v.y, v.rows, this.plot.h, (text, at, i) => {
      g.fillStyle = i === this.side.state.query || (p && i === p.i) ? strong : soft;
      g.fillText(shortened(g, text, m.left - 10), m.left - 6, m.top + at);
    });
    const cell = this.plot.w / v.columns;
    g.font = font(size(cell));
    // Names lie where all of them have the room, and stand where they have not.
    let lying = cell >= kLine;
    axis(this.source.keys(), v.x, v.columns, this.plot.w, text => {
      lying = lying && g.measureText(text).width <= cell - 6;
    });
    g.textAlign = lying ? "center" : "left";
    axis(this.source.keys(), v.x, v.columns, this.plot.w, (text, at, j) => {
      g.fillStyle = p && j === p.j ? strong : soft;
      g.save();
      g.translate(m.left + at, m.top - (lying ? 10 : 6));
      if (!lying) g.rotate(-Math.PI / 2);
      g.fillText(shortened(g, text, lying ? cell : m.top - 10), 0, 0);
      g.restore();
    });
  }
  marks(g) {
    const m = this.margin, row = this.place(this.side.state.query, this.view.x);
    g.save();
    g.beginPath();
    g.rect(m.left - 1, m.top - 1, this.plot.w + 2, this.plot.h + 2);
    g.clip();
    g.strokeStyle = ink("--s1");
    g.lineWidth = 1.5;
    g.strokeRect(m.left - 2, row.y, this.plot.w + 4, Math.max(row.h, 2));
    if (this.pointed) {
      const c = this.place(this.pointed.i, this.pointed.j);
      g.strokeStyle = ink("--ink");
      g.strokeRect(c.x, c.y, Math.max(c.w, 2), Math.max(c.h, 2));
    }
    g.restore();
  }
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect(), v = this.view;
    const fx = (event.clientX - box.left - this.margin.left) / this.plot.w;
    const fy = (event.clientY - box.top - this.margin.top) / this.plot.h;
    if (fx >= 1 || fy < 0 || fy >= 1) return null;  // left of the map lie the names of its rows
    return { i: Math.floor(v.y + fy * v.rows), j: Math.floor(v.x + Math.max(fx, 0) * v.columns),
      fx, fy, inside: fx >= 0 };
  }
  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", event => {
      drag = { x: event.clientX, y: event.clientY, vx: this.view.x, vy: this.view.y, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (drag) {
        const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
        drag.moved = drag.moved || Math.hypot(dx, dy) > 4;
        if (drag.moved) {
          this.view.x = drag.vx - dx * this.view.columns / this.plot.w;
          this.view.y = drag.vy - dy * this.view.rows / this.plot.h;
          this.clamp();
          this.heard.moved(this);
          return;
        }
      }
      const at = this.cellAt(event);
      this.pointed = at && at.inside ? at : null;
      this.heard.pointed(this, event);
    });
    canvas.addEventListener("pointerup", event => {
      const at = this.cellAt(event);
      if (drag && !drag.moved && at) this.heard.choose(at.i);
      drag = null;
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", event => { this.pointed = null; this.heard.pointed(this, event); });
    // A wheel that always zoomed would hold fast whoever scrolls the page.
    canvas.addEventListener("wheel", event => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      const at = this.cellAt(event);
      this.zoom(Math.exp(-event.deltaY * 0.0025), at ? Math.max(at.fx, 0) : 0.5, at ? at.fy : 0.5);
    }, { passive: false });
    canvas.addEventListener("keydown", event => {
      const by = { "+": 1.4, "=": 1.4, "-": 1 / 1.4 }[event.key];
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (by) this.zoom(by);
      else if (step) this.heard.choose(Math.min(Math.max(this.side.state.query + step, 0), this.source.rows - 1));
      else if (event.key === "0") { this.fit(); this.heard.moved(this); }
      else return;
      event.preventDefault();
    });
  }
}

Object.assign(window.heddleInspect, { Weights, Difference, MapView, paint });
})();
