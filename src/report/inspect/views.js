// The chosen query as text and on the image, and the table of all heads.
"use strict";
(() => {
const { page, words, sides, strength, colour, css, ink, quoted, digits, made, ofSide, say, choose,
  openSide, showTip, watch, start, Weights } = window.heddleInspect;
const byId = id => document.getElementById(id);

// ---- text --------------------------------------------------------------------------------------

// Tokens of a text that can be clicked; they are made once for each list of tokens.
function buildText(box, names, told, click) {
  // Words without spaces of their own need some between them; single characters do not.
  box.classList.toggle("words", !names.some(n => n.includes("␣"))
    && names.some(n => n.length > 1 && !n.startsWith("<") && !n.startsWith("\\")));
  box.replaceChildren(...names.map((name, i) => {
    const span = made("span", "token", name.replaceAll("␣", " ").replaceAll("\\n", "⏎\n"));
    span.addEventListener("click", () => click(i));
    span.addEventListener("pointerenter", event => { say(told(i)); showTip(told(i), event); });
    span.addEventListener("pointerleave", event => showTip("", event));
    return span;
  }));
}

// The work of a side's open head, as text.
class TextView {
  constructor(side) {
    this.side = side;
    this.shown = "";  // which lists are in the page
    const box = made("div", "text-side");
    if (sides.length > 1) box.append(made("p", "side-name", side.name));
    this.strongest = made("p", "strongest");
    this.strongest.id = ofSide("strongest", side);
    this.queriesBox = made("div");
    this.queriesBox.id = ofSide("queries-box", side);
    this.queries = made("div", "text");
    this.queries.id = ofSide("queries-text", side);
    this.keys = made("div", "text");
    this.keys.id = ofSide("keys-text", side);
    this.queriesBox.append(made("p", "side", words("queries_side")), this.queries,
      made("p", "side", words("keys_side")));
    box.append(this.strongest, this.queriesBox, this.keys);
    byId("text-sides").append(box);
  }
  show() {
    const side = this.side, layer = side.current().layer, one = layer.queries === layer.keys;
    const lists = layer.queries + "/" + layer.keys, weights = new Weights(side);
    if (lists !== this.shown) {
      // Where tokens look at each other one text is both.
      buildText(this.keys, side.keys(), i => weights.reading(side.state.query, i),
        i => { if (one) choose(side, i); });
      if (!one) buildText(this.queries, side.queries(), i => words("query_told", i, quoted(side.queries()[i])),
        i => choose(side, i));
      this.queriesBox.hidden = one;
      this.shown = lists;
    }
    this.colourKeys(one);
    if (!one) [...this.queries.children].forEach((s, i) => s.classList.toggle("query", i === side.state.query));
    // The chosen token stays in sight in its own box; the page is not moved.
    const box = one ? this.keys : this.queries, span = box.children[side.state.query];
    const above = span.offsetTop - box.offsetTop;
    if (above < box.scrollTop || above > box.scrollTop + box.clientHeight - 40)
      box.scrollTop = above - box.clientHeight / 2;
    this.strongest.textContent = strongest(side);
  }
  colourKeys(one) {
    const map = this.side.current(), query = this.side.state.query;
    [...this.keys.children].forEach((span, j) => {
      const w = map.value(query, j), c = w < 0 ? null : colour(strength(map, query, w));
      span.style.background = c ? css(c) : "none";
      // Written on its colour: dark on light ones, light on dark ones.
      const bright = c && 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2] > 140;
      span.style.color = c ? (bright ? "#14161a" : "#ffffff") : ink("--soft");
      span.classList.toggle("hidden-token", w < 0);
      span.classList.toggle("query", one && j === query);
    });
  }
}

function strongest(side) {
  const i = side.state.query, map = side.current(), name = quoted(side.queries()[i]);
  if (!map.isExact(i)) return words("query_pooled", i, name);
  const order = [];
  for (let j = map.mask.first[i]; j < map.mask.last[i]; ++j) order.push([map.value(i, j), j]);
  order.sort((a, b) => b[0] - a[0]);
  const most = order.slice(0, 6).map(([w, j]) => `${quoted(side.keys()[j])} (${j}) ${digits(w)}`);
  return order.length === 0 ? words("query_blind", i, name)
    : words("query_looks", i, name, most.join(", ") + (order.length > 6 ? ", …" : ""));
}

// ---- image -------------------------------------------------------------------------------------

const kImage = 420;

// Heat that shows on dark and on light pictures alike: the picture behind it is grey and of middle
// brightness (64 to 144 of 255), so that yellow is lighter and violet darker than all of it.
const heats = ["#3b0f70", "#8c2981", "#de4968", "#fe9f6d", "#fff25a"]
  .map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)));
function heat(s) {
  const at = s * (heats.length - 1), low = Math.min(Math.floor(at), heats.length - 2);
  return heats[low].map((c, k) => Math.round(c + (heats[low + 1][k] - c) * (at - low)));
}
function greyed(g, w, h) {
  const image = g.getImageData(0, 0, w, h), d = image.data;
  for (let i = 0; i < d.length; i += 4) {
    const grey = 64 + 80 / 255 * (0.3 * d[i] + 0.59 * d[i + 1] + 0.11 * d[i + 2]);
    d[i] = d[i + 1] = d[i + 2] = grey;
  }
  g.putImageData(image, 0, 0);
}
// Two lines, of which one is seen on any ground.
function outline(g, x, y, unit, inner) {
  for (const [colour, width, by] of [["#000000", 5, 2.5], [inner, 2.5, 2.5]]) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.strokeRect(x + by, y + by, unit - 2 * by, unit - 2 * by);
  }
}

class ImageView {
  constructor(side) {
    this.side = side;
    this.im = side.data.image;
    this.picture = new Image();
    const box = made("div", "image-side");
    if (sides.length > 1) box.append(made("p", "side-name", side.name));
    this.strongest = made("p", "strongest");
    this.strongest.id = ofSide("strongest", side);
    const classToken = made("button", "", words("class_query"));
    classToken.id = ofSide("class-query", side);
    classToken.className = "class-query";
    classToken.hidden = !this.im.class_token;
    classToken.addEventListener("click", () => choose(side, 0));
    const both = made("div", "images");
    this.canvases = ["image-plain", "image-heat"].map(name => {
      const canvas = made("canvas");
      canvas.id = ofSide(name, side);
      canvas.addEventListener("click", e => { const p = this.patchAt(e); if (p !== null) choose(side, p); });
      canvas.addEventListener("pointermove", e => {
        const p = this.patchAt(e);
        if (p === null) return;
        say(new Weights(side).reading(side.state.query, p));
        showTip(new Weights(side).reading(side.state.query, p), e);
      });
      canvas.addEventListener("pointerleave", e => showTip("", e));
      return canvas;
    });
    both.append(...this.canvases);
    box.append(classToken, both, this.scale(), this.strongest);
    byId("image-sides").append(box);
    this.picture.addEventListener("load", () => { watch(() => this.show()); this.show(); });
    this.picture.src = this.im.src;
  }
  // The colours from no weight to the most.
  scale() {
    const box = made("p", "hint heat-scale"), bar = made("span", "bar");
    bar.style.background = `linear-gradient(to right, ${[0, .25, .5, .75, 1].map(s => css(heat(s)))})`;
    box.append(words("heat_low") + " ", bar, " " + words("heat_high"));
    return box;
  }
  show() {
    const im = this.im, map = this.side.current(), query = this.side.state.query;
    const unit = kImage / Math.max(im.rows, im.columns), first = im.before;
    const strengths = Array.from({ length: im.rows * im.columns },
      (_, p) => Math.max(strength(map, query, Math.max(map.value(query, p + first), 0)), 0));
    const most = Math.max(...strengths);
    for (const canvas of this.canvases) {
      const warm = canvas === this.canvases[1], g = canvas.getContext("2d", { willReadFrequently: true });
      canvas.width = Math.round(im.columns * unit);
      canvas.height = Math.round(im.rows * unit);
      g.imageSmoothingEnabled = false;
      g.drawImage(this.picture, 0, 0, canvas.width, canvas.height);
      if (warm) greyed(g, canvas.width, canvas.height);
      strengths.forEach((s, p) => {
        const x = (p % im.columns) * unit, y = Math.floor(p / im.columns) * unit;
        if (warm) {
          g.fillStyle = `rgb(${heat(s).join(" ")} / 0.68)`;
          g.fillRect(x, y, unit, unit);
        }
      });
      strengths.forEach((s, p) => {
        const x = (p % im.columns) * unit, y = Math.floor(p / im.columns) * unit;
        if (p + first === query) outline(g, x, y, unit, "#3fd0ff");
        else if (warm && most > 0 && s > 0.85 * most) outline(g, x, y, unit, "#ffffff");
      });
    }
    this.strongest.textContent = strongest(this.side);
  }
  patchAt(event) {
    const box = event.target.getBoundingClientRect(), im = this.im;
    const x = Math.floor((event.clientX - box.left) / box.width * im.columns);
    const y = Math.floor((event.clientY - box.top) / box.height * im.rows);
    const inside = x >= 0 && y >= 0 && x < im.columns && y < im.rows;
    return inside ? y * im.columns + x + im.before : null;
  }
}

// ---- the table ---------------------------------------------------------------------------------

const share = v => (100 * v).toFixed(1) + " %";
const number = v => v.toFixed(2);
const columns = [
  ["side", r => sides.length > 1 ? r.side.index : undefined, r => r.side.name],
  ["layer", r => r.layer, r => r.name],
  ["head", r => r.head, r => String(r.head)],
  ["entropy_bits", r => r.entropy_bits, r => number(r.entropy_bits)],
  ["of_uniform", r => r.entropy_share, r => share(r.entropy_share)],
  ["largest", r => r.largest, r => share(r.largest)],
  ["distance", r => r.distance, r => number(r.distance)],
  ["self", r => r.self, r => share(r.self)],
  ["previous", r => r.previous, r => share(r.previous)],
  ["next", r => r.next, r => share(r.next)],
  ["first", r => r.first, r => share(r.first)],
  ["last", r => r.last, r => share(r.last)],
  ["monotonic", r => r.monotonicity, r => number(r.monotonicity)],
  ["sink", r => r.sink, r => share(r.sink)],
];

function buildTable() {
  const rows = sides.flatMap(side => side.data.layers.flatMap((l, layer) =>
    l.stats.map((s, head) => ({ ...s, side, layer, head, name: l.name }))));
  const used = columns.filter(([, value]) => rows.some(r => value(r) !== undefined));
  const table = byId("stats"), head = table.createTHead().insertRow(), body = table.createTBody();
  let sorted = used.findIndex(([name]) => name === "layer"), down = false;
  const fill = () => {
    const value = used[sorted][1];
    // Absent values come last, whichever way.
    rows.sort((a, b) => (value(a) === undefined) - (value(b) === undefined)
      || (down ? value(b) - value(a) : value(a) - value(b)) || a.layer - b.layer || a.head - b.head
      || a.side.index - b.side.index);
    body.replaceChildren(...rows.map(r => {
      const tr = document.createElement("tr");
      for (const [, v, text] of used) {
        const td = tr.insertCell();
        td.className = "number";
        td.textContent = v(r) === undefined ? "" : text(r);
      }
      Object.assign(tr.dataset, { side: r.side.index, layer: r.layer, head: r.head });
      tr.addEventListener("click", () => openSide(r.side, r.layer, r.head));
      return tr;
    }));
    [...head.cells].forEach((th, i) =>
      th.setAttribute("aria-sort", i !== sorted ? "none" : down ? "descending" : "ascending"));
    mark();
  };
  used.forEach(([name], i) => {
    const th = document.createElement("th"), button = document.createElement("button");
    button.textContent = words("column_" + name);
    button.addEventListener("click", () => {
      down = sorted === i ? !down : !["side", "layer", "head"].includes(name);
      sorted = i;
      fill();
    });
    th.append(button);
    head.append(th);
  });
  const mark = () => {
    for (const tr of body.rows) {
      const { layer, head } = sides[tr.dataset.side].state;
      tr.classList.toggle("open", +tr.dataset.layer === layer && +tr.dataset.head === head);
    }
  };
  fill();
  watch(mark);
}

// Two images, two texts; a model of images beside one of texts is refused before.
const images = Boolean(page.sides[0].image);
byId("text-view").hidden = images;
byId("image-view").hidden = !images;
buildTable();
if (!images) for (const view of sides.map(s => new TextView(s))) watch(() => view.show());
start();
if (images) for (const side of sides) new ImageView(side);
document.body.dataset.ready = "yes";
})();
