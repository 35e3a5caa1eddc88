// Charts with a slider. Lines follow laws over numbers that the run measured.
'use strict';
(() => {
  const kLeft = 70, kRight = 980, kTop = 28, kBottom = 372;
  const kPoints = 240;  // of a line that a formula gives

  const sum = values => values.reduce((a, b) => a + b, 0);

  function softmax(scores) {
    const most = Math.max(...scores), e = scores.map(s => Math.exp(s - most)), all = sum(e);
    return e.map(v => v / all);
  }

  // Each law: value(numbers, t, line, x); `xs` where it is known at some places only; and the
  // numbers that are told for t.
  const laws = {
    // The measured numbers themselves: those of the stop nearest to t.
    grid: {
      xs: (numbers, line, explorer, t) =>
          explorer.measured.filter(m => m[1] === line && near(m[0], t)).map(m => m[2]),
      value: (numbers, t, line, x, explorer) =>
          explorer.measured.find(m => m[1] === line && near(m[0], t) && near(m[2], x))?.[3] ?? NaN,
    },
    // Weights of scores at temperature t, in the order of the keys.
    softmax: {
      xs: numbers => numbers.scores.map((_, i) => i + 1),
      value: (numbers, t, line, x) => softmax(numbers.scores.map(s => s / t))[Math.round(x) - 1],
      readings: [
        (numbers, t) => Math.max(...softmax(numbers.scores.map(s => s / t))),
        (numbers, t) =>
            -sum(softmax(numbers.scores.map(s => s / t)).map(w => w > 0 ? w * Math.log2(w) : 0)),
      ],
    },
    // ALiBi with equal scores: each step back is worth e^(−t), over as many tokens as there are.
    alibi: {
      value: (numbers, t, line, x) => Math.exp(-t * x) /
          sum(Array.from({length: numbers.tokens[0]}, (_, j) => Math.exp(-t * j))),
      readings: [(numbers, t) => 1 / t],
    },
    // RoPE with base t: each pair of dimensions gives a·cos + b·sin of its angle at distance x.
    rope: {
      value: (numbers, t, line, x) => sum(numbers.a.map((a, i) => {
        const angle = x * Math.pow(t, -i / numbers.a.length);
        return a * Math.cos(angle) + numbers.b[i] * Math.sin(angle);
      })),
      // The distance after which the slowest pair has turned once.
      readings:
          [(numbers, t) => 2 * Math.PI * Math.pow(t, (numbers.a.length - 1) / numbers.a.length)],
    },
  };

  const near = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b), 1e-12);

  function shown(v, digits) {
    if (v === 0) return '0';
    const size = Math.abs(v);
    if (size >= 1e-3 && size < 1e6) {
      const text = size >= 1000 ? v.toFixed(0) : v.toPrecision(digits);
      return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
    }
    const [factor, exponent] = v.toExponential(digits - 1).split('e');
    return `${factor.replace(/\.?0+$/, '')}×10${
            [...String(+exponent)].map(c => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]).join('')}`;
  }

  class Explorer {
    constructor(box) {
      this.box = box;
      Object.assign(this, JSON.parse(box.dataset.explorer));
      this.rule = laws[this.law];
      this.input = box.querySelector('input');
      this.svg = box.querySelector('svg');
      this.reset();
      this.input.addEventListener('input', () => this.draw());
    }
    // Where the slider begins, and what a printed page shows.
    reset() {
      this.input.value = this.position(this.slider.start);
      this.draw();
    }
    position(t) {
      const s = this.slider;
      return Math.round(
          s.steps *
          (s.log ? Math.log(t / s.low) / Math.log(s.high / s.low) :
                   (t - s.low) / (s.high - s.low)));
    }
    t() {
      const s = this.slider, share = +this.input.value / s.steps;
      return s.log ? s.low * Math.pow(s.high / s.low, share) : s.low + share * (s.high - s.low);
    }
    value(line, x, t = this.t()) { return this.rule.value(this.numbers, t, line, x, this); }
    reading(i, t = this.t()) { return this.rule.readings[i](this.numbers, t); }
    at(axis, v, from, to) {
      const f = axis.log ? Math.log : x => x;
      return from + (f(v) - f(axis.low)) / (f(axis.high) - f(axis.low)) * (to - from);
    }
    px(v) { return this.at(this.x, v, kLeft, kRight); }
    py(v) { return this.at(this.y, v, kBottom, kTop); }
    xs(line) {
      if (this.rule.xs) return this.rule.xs(this.numbers, line, this, this.t());
      return Array.from(
          {length: kPoints + 1},
          (_, i) => this.x.log ? this.x.low * Math.pow(this.x.high / this.x.low, i / kPoints) :
                                 this.x.low + i / kPoints * (this.x.high - this.x.low));
    }
    element(name, attributes, text) {
      const e = document.createElementNS('http://www.w3.org/2000/svg', name);
      for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
      if (text !== undefined) e.textContent = text;
      this.svg.append(e);
      return e;
    }
    frame() {
      for (const [v, text] of this.y.marks) {
        this.element(
            'line', {class: 'grid', x1: kLeft, x2: kRight, y1: this.py(v), y2: this.py(v)});
        this.element(
            'text',
            {x: kLeft - 8, y: this.py(v), 'text-anchor': 'end', 'dominant-baseline': 'middle'},
            text);
      }
      for (const [v, text] of this.x.marks)
        this.element('text', {x: this.px(v), y: kBottom + 18, 'text-anchor': 'middle'}, text);
      this.element(
          'text', {x: (kLeft + kRight) / 2, y: 412, 'text-anchor': 'middle'}, this.x.label);
      this.element('text', {x: kLeft, y: 16}, this.y.label);
    }
    draw() {
      const t = this.t();
      this.svg.replaceChildren();
      this.frame();
      this.lines.forEach((name, line) => {
        const inside = v => Number.isFinite(v) && (!this.y.log || v > 0) &&
            v >= this.y.low - 1e-9 && v <= this.y.high + 1e-9;
        const points =
            this.xs(line).map(x => [x, this.value(line, x)]).filter(([, v]) => inside(v));
        this.element('polyline', {
          class: 'line',
          style: `stroke:var(--s${line})`,
          points:
              points.map(([x, v]) => `${this.px(x).toFixed(1)},${this.py(v).toFixed(1)}`).join(' ')
        });
        for (const m of this.measured)
          if (m[1] === line && near(m[0], t) && inside(m[3]))
            this.element(
                'circle',
                {r: 4, cx: this.px(m[2]), cy: this.py(m[3]), style: `fill:var(--s${line})`});
      });
      const text = shown(t, this.slider.digits);
      this.box.querySelector('output').textContent = text;
      this.input.setAttribute('aria-valuetext', text);
      this.tell();
    }
    tell() {
      const parts = this.lines.length > 1 ? this.lines.map((name, i) => {
        const span = document.createElement('span'), mark = document.createElement('i');
        mark.style.background = `var(--s${i})`;
        span.append(mark, name);
        return span;
      }) :
                                            [];
      this.readings.forEach((r, i) => {
        const span = document.createElement('span'), b = document.createElement('b');
        b.textContent = shown(this.reading(i), 4);
        span.append(r.label + ' ', b);
        parts.push(span);
      });
      this.box.querySelector('.readings').replaceChildren(...parts);
    }
  }

  window.heddleExplorers = {};
  for (const box of document.querySelectorAll('.explorer')) {
    const e = new Explorer(box);
    window.heddleExplorers[e.name] = e;
  }
  addEventListener('beforeprint', () => {
    for (const e of Object.values(window.heddleExplorers)) e.reset();
  });
})();
