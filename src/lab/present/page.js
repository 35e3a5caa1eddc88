// The index follows the reader, and is out of the way on a small screen.
"use strict";
(() => {
// On paper all of it is shown.
const index = document.querySelector(".index details"), wide = matchMedia("(min-width: 1001px), print");
const fit = () => { index.open = wide.matches; };
fit();
wide.addEventListener("change", fit);
index.addEventListener("click", event => {
  if (event.target.closest("a") && !wide.matches) index.open = false;
});

const links = new Map([...index.querySelectorAll("a")].map(a => [a.hash.slice(1), a]));
const sections = [...links.keys()].map(id => document.getElementById(id));
const up = document.querySelector(".to-top");
let waiting = false;

// The section that is read: the last whose head is above the middle of the upper half.
function follow() {
  waiting = false;
  up.hidden = scrollY < innerHeight;
  const line = innerHeight / 4;
  let current = null;
  for (const s of sections) if (s.getBoundingClientRect().top <= line) current = s;
  for (const [id, a] of links) {
    if (current === null || id !== current.id) a.removeAttribute("aria-current");
    else if (!a.hasAttribute("aria-current")) {
      a.setAttribute("aria-current", "true");
      // Only the index is scrolled, not the page.
      const box = index.parentElement, r = a.getBoundingClientRect(), b = box.getBoundingClientRect();
      if (wide.matches && (r.top < b.top || r.bottom > b.bottom)) box.scrollTop += r.top - b.top - box.clientHeight / 2;
    }
  }
}
addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(follow); } });
follow();
})();
