// How pages look, and the one script they have: charts tell the values under the pointer.
#pragma once

#include <string_view>

namespace heddle::report {

inline constexpr std::string_view kStyle = R"css(:root {
  color-scheme: light dark;
  --ground: #fcfcfb; --card: #ffffff; --ink: #1d1f23; --soft: #5d636e; --line: #dcdfe4;
  --s0: #2463b4; --s1: #c4511b; --s2: #2a8050; --s3: #8d3fa8; --s4: #a3751a; --s5: #b0305c;
  --s6: #257f8c; --s7: #6b6f76;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #16181c; --card: #1e2126; --ink: #e8eaed; --soft: #a0a7b3; --line: #353a42;
    --s0: #6ea8f0; --s1: #f0935f; --s2: #6cc794; --s3: #cf92e5; --s4: #dcb659; --s5: #f07fa5;
    --s6: #68c3d0; --s7: #a9aeb8;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei",
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 0 0 .8rem; }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
.subtitle { color: var(--soft); margin: .3rem 0 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem; margin-top: 1.25rem; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem 2.2rem; margin: 1.25rem 0 0; }
.facts dt { color: var(--soft); font-size: .82rem; }
.facts dd { margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
.facts .number, span.number { white-space: nowrap; }
/* A shadow at the edge tells that there is more; where all is seen, the card covers it. */
.scroll { overflow-x: auto; background:
  linear-gradient(to right, var(--card) 40%, transparent) left / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--card) 40%, transparent) right / 2.5rem 100% no-repeat local,
  linear-gradient(to right, var(--line), transparent) left / .8rem 100% no-repeat scroll,
  linear-gradient(to left, var(--line), transparent) right / .8rem 100% no-repeat scroll; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .85rem; word-break: keep-all; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
table.wide { font-size: .86rem; }
.wide th, .wide td { padding: .35rem .45rem; }
.wide th { font-size: .8rem; }
pre { overflow-x: auto; background: var(--ground); border: 1px solid var(--line);
  border-radius: 8px; padding: .8rem 1rem; margin: 0; font-size: .85rem; white-space: pre-wrap; }
svg.chart, svg.bars { width: 100%; height: auto; display: block; font-size: 12px; }
.chart text, .bars text { fill: var(--soft); }
.chart .grid { stroke: var(--line); }
.chart .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.chart .line.thin { stroke-width: 1; }
.thin { opacity: .45; }
svg.map { max-width: 100%; height: auto; display: block; font-size: 12px; }
.map text, .bars text { fill: var(--soft); }
.map .cell { stroke: var(--line); stroke-width: .6; }
.map .value, .bars .value { fill: var(--ink); font-variant-numeric: tabular-nums; }
.bars .grid { stroke: var(--line); }
.dots .interval { opacity: .22; stroke: none; }
.chart .band { opacity: .16; stroke: none; }
.chart .leaving { fill: var(--ink); }
.chart .pointer { stroke: var(--soft); stroke-dasharray: 3 3; visibility: hidden; }
.chart .reading { fill: var(--ink); visibility: hidden; }
/* On a phone the drawings keep a width at which their labels can be read; they scroll sideways. */
@media screen and (max-width: 700px) {
  main { padding: 1.2rem .7rem 3rem; }
  section { padding: .9rem .8rem; }
  /* Chinese may break everywhere: without a width, one character a line. */
  td:first-child { min-width: 7.5em; }
  td:not(.number) { min-width: 5.5em; }
  table { font-size: .92rem; }
  th, td { padding: .35rem .4rem; }
  /* Letters are larger beside the same drawing: numbers of seven digits need room on the left. */
  .scroll > svg.chart { min-width: 720px; font-size: 14px; padding-left: .5rem; overflow: visible; }
  .scroll > svg.bars { min-width: 780px; font-size: 14px; }
}
/* On paper nothing scrolls: tables are set small enough, and nothing is torn in two. */
@media print {
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; background: none; }
  section { border: none; padding: .6rem 0; }
  table { font-size: 9pt; }
  table.wide { font-size: 7pt; }
  .wide th { font-size: 6.5pt; }
  th, td, .wide th, .wide td { padding: .2rem .3rem; }
  tr, svg, .facts, li { break-inside: avoid; }
  svg.chart { width: 84%; font-size: 16px; }
  svg.bars { font-size: 13px; }
  h2, h3 { break-after: avoid; }
}
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .88rem; margin-top: .4rem; }
.legend i { display: inline-block; width: 1.2em; height: .25em; border-radius: 2px;
  vertical-align: middle; margin-right: .45em; print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
)css";

inline constexpr std::string_view kScript =
    R"js(const readCharts = () => { for (const svg of document.querySelectorAll("svg.chart")) {
  const chart = JSON.parse(svg.dataset.chart);
  const pointer = svg.querySelector(".pointer"), reading = svg.querySelector(".reading");
  const short = v => Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3)
    ? v.toExponential(2) : String(+v.toPrecision(5));
  svg.addEventListener("pointermove", event => {
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(svg.getScreenCTM().inverse()).x;
    let best = null;
    for (const s of chart.series)
      for (const p of s.points)
        if (best === null || Math.abs(p[2] - at) < Math.abs(best[2] - at)) best = p;
    if (best === null) return;
    pointer.setAttribute("x1", best[2]);
    pointer.setAttribute("x2", best[2]);
    const values = chart.series.map(s => {
      let own = null;
      for (const p of s.points)
        if (own === null || Math.abs(p[2] - best[2]) < Math.abs(own[2] - best[2])) own = p;
      return own === null ? "" : s.name + " " + short(own[1]);
    });
    reading.textContent = chart.x + " " + short(best[0]) + ":  " + values.join("   ");
    pointer.style.visibility = reading.style.visibility = "visible";
  });
  svg.addEventListener("pointerleave", () => {
    pointer.style.visibility = reading.style.visibility = "hidden";
  });
} };
readCharts();
)js";

}  // namespace heddle::report
