// The chosen query as text and on the image, and the table of all heads.
"use strict";
(() => {
const { data, state, current, queryLabels, keyLabels, quoted, digits, strength, colour, css,
  ink, say, reading, choose, open, watch, start } = window.heddleInspect;
const byId = id => document.getElementById(id);

// ---- text --------------------------------------------------------------------------------------

// Tokens of a text that can be clicked; they are made once for each list of tokens.
function buildText(box, names, click) {
  // Words without spaces of their own need some between them; single characters do not.
  box.classList.toggle("words", !names.some(n => n.includes("␣"))
    && names.some(n => n.length > 1 && !n.startsWith("<") && !n.startsWith("\\")));
  box.replaceChildren(...names.map((name, i) => {
    const span = document.createElement("span");
    span.className = "token";
    span.textContent = name.replaceAll("␣", " ").replaceAll("\\n", "⏎\n");
    span.addEventListener("click", () => click(i));
    span.addEventListener("pointerenter", () => say(box.id === "keys-text"
      ? reading(state.query, i) : `query ${i} ${quoted(name)}`));
    return span;
  }));
}

let shown = "";  // which lists are in the page

function showText() {
  const map = current(), one = map.layer.queries === map.layer.keys;
  const lists = map.layer.queries + "/" + map.layer.keys;
  const queries = byId("queries-text"), keys = byId("keys-text");
  if (lists !== shown) {
    // Where tokens look at each other one text is both.
    buildText(keys, keyLabels(), i => { if (one) choose(i); });
    if (!one) buildText(queries, queryLabels(), choose);
    byId("queries-box").hidden = one;
    shown = lists;
  }
  [...keys.children].forEach((span, j) => {
    const w = map.value(state.query, j);
    const c = w < 0 ? null : colour(strength(map, state.query, w));
    span.style.background = c ? css(c) : "none";
    // Written on its colour: dark on light ones, light on dark ones.
    const bright = c && 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2] > 140;
    span.style.color = c ? (bright ? "#14161a" : "#ffffff") : ink("--soft");
    span.classList.toggle("hidden-token", w < 0);
    span.classList.toggle("query", one && j === state.query);
  });
  if (!one) [...queries.children].forEach((s, i) => s.classList.toggle("query", i === state.query));
  // The chosen token stays in sight in its own box; the page is not moved.
  const box = one ? keys : queries, span = box.children[state.query];
  const above = span.offsetTop - box.offsetTop;
  if (above < box.scrollTop || above > box.scrollTop + box.clientHeight - 40)
    box.scrollTop = above - box.clientHeight / 2;
  byId("strongest").textContent = strongest(map);
}

function strongest(map) {
  const i = state.query, name = quoted(queryLabels()[i]);
  if (!map.isExact(i)) return `Query ${i} ${name} is pooled: colours are those of its cell.`;
  const order = [];
  for (let j = map.mask.first[i]; j < map.mask.last[i]; ++j) order.push([map.value(i, j), j]);
  order.sort((a, b) => b[0] - a[0]);
  const most = order.slice(0, 6).map(([w, j]) => `${quoted(keyLabels()[j])} (${j}) ${digits(w)}`);
  return order.length === 0 ? `Query ${i} ${name} sees no key.`
    : `Query ${i} ${name} looks at ${most.join(", ")}${order.length > 6 ? ", …" : ""}`;
}

// ---- image -------------------------------------------------------------------------------------

const kImage = 420;
const picture = new Image();

function showImage() {
  const im = data.image, map = current(), sides = [byId("image-plain"), byId("image-heat")];
  const unit = kImage / Math.max(im.rows, im.columns), first = im.class_token ? 1 : 0;
  for (const canvas of sides) {
    canvas.width = Math.round(im.columns * unit);
    canvas.height = Math.round(im.rows * unit);
    const g = canvas.getContext("2d");
    g.imageSmoothingEnabled = false;
    g.drawImage(picture, 0, 0, canvas.width, canvas.height);
    for (let p = 0; p < im.rows * im.columns; ++p) {
      const x = (p % im.columns) * unit, y = Math.floor(p / im.columns) * unit;
      if (canvas === sides[1]) {  // dark where it does not look, warm where it does
        const s = strength(map, state.query, map.value(state.query, p + first));
        g.fillStyle = `rgb(0 0 0 / ${0.7 * (1 - s)})`;
        g.fillRect(x, y, unit, unit);
        g.fillStyle = `rgb(255 110 20 / ${0.6 * s})`;
        g.fillRect(x, y, unit, unit);
      }
      if (p + first === state.query) {
        g.strokeStyle = ink("--s1");
        g.lineWidth = 3;
        g.strokeRect(x + 1.5, y + 1.5, unit - 3, unit - 3);
      }
    }
  }
  byId("class-query").hidden = !im.class_token;
  byId("strongest").textContent = strongest(map);
}

function patchAt(event) {
  const box = event.target.getBoundingClientRect(), im = data.image;
  const x = Math.floor((event.clientX - box.left) / box.width * im.columns);
  const y = Math.floor((event.clientY - box.top) / box.height * im.rows);
  const inside = x >= 0 && y >= 0 && x < im.columns && y < im.rows;
  return inside ? y * im.columns + x + (im.class_token ? 1 : 0) : null;
}

function startImage() {
  for (const id of ["image-plain", "image-heat"]) {
    byId(id).addEventListener("click", e => { const p = patchAt(e); if (p !== null) choose(p); });
    byId(id).addEventListener("pointermove", e => {
      const p = patchAt(e);
      if (p !== null) say(reading(state.query, p));
    });
  }
  byId("class-query").addEventListener("click", () => choose(0));
  picture.addEventListener("load", () => { watch(showImage); showImage(); });
  picture.src = data.image.src;
}

// ---- the table ---------------------------------------------------------------------------------

const share = v => (100 * v).toFixed(1) + " %";
const number = v => v.toFixed(2);
const columns = [
  ["layer", r => r.layer, r => r.name],
  ["head", r => r.head, r => String(r.head)],
  ["entropy, bits", r => r.entropy_bits, r => number(r.entropy_bits)],
  ["of uniform", r => r.entropy_share, r => share(r.entropy_share)],
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
  const rows = data.layers.flatMap((l, layer) =>
    l.stats.map((s, head) => ({ ...s, layer, head, name: l.name })));
  const used = columns.filter(([, value]) => rows.some(r => value(r) !== undefined));
  const table = byId("stats"), head = table.createTHead().insertRow(), body = table.createTBody();
  let sorted = 0, down = false;
  const fill = () => {
    const value = used[sorted][1];
    // What is absent comes last, whichever way.
    rows.sort((a, b) => (value(a) === undefined) - (value(b) === undefined)
      || (down ? value(b) - value(a) : value(a) - value(b)) || a.layer - b.layer || a.head - b.head);
    body.replaceChildren(...rows.map(r => {
      const tr = document.createElement("tr");
      for (const [, v, text] of used) {
        const td = tr.insertCell();
        td.className = "number";
        td.textContent = v(r) === undefined ? "" : text(r);
      }
      tr.dataset.layer = r.layer;
      tr.dataset.head = r.head;
      tr.addEventListener("click", () => open(r.layer, r.head));
      return tr;
    }));
    [...head.cells].forEach((th, i) =>
      th.setAttribute("aria-sort", i !== sorted ? "none" : down ? "descending" : "ascending"));
    mark();
  };
  used.forEach(([name], i) => {
    const th = document.createElement("th"), button = document.createElement("button");
    button.textContent = name;
    button.addEventListener("click", () => {
      down = sorted === i ? !down : i > 1;
      sorted = i;
      fill();
    });
    th.append(button);
    head.append(th);
  });
  const mark = () => {
    for (const tr of body.rows)
      tr.classList.toggle("open", +tr.dataset.layer === state.layer && +tr.dataset.head === state.head);
  };
  fill();
  watch(mark);
}

byId("text-view").hidden = Boolean(data.image);
byId("image-view").hidden = !data.image;
buildTable();
if (!data.image) watch(showText);
start();
if (data.image) startImage();
document.body.dataset.ready = "yes";
})();
