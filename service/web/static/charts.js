// Draws the server's charts again, with values under the pointer and zoom by dragging. Without scripts the drawing of
// the server stays; the table behind each chart has the figures either way.
"use strict";
(() => {
  if (!window.uPlot) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const two = (number) => String(number).padStart(2, "0");
  const figure = (value) => (value >= 10 || value === Math.round(value) ? Math.round(value) : Math.round(value * 10) / 10).toLocaleString("en");
  const iso = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19) + "Z";
  // The pages' times are in the time zone of the server: `seconds` are those of its clock.
  const moment = (seconds, day) => {
    const at = new Date(seconds * 1000);
    const date = two(at.getUTCMonth() + 1) + "-" + two(at.getUTCDate());
    return day ? date : date + " " + two(at.getUTCHours()) + ":" + two(at.getUTCMinutes());
  };
  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const WHOLE = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat(); // steps between counts

  const tooltip = (figureBox, rows) => {
    const tip = make("div", "tip");
    tip.hidden = true;
    figureBox.append(tip);
    return (plot) => {
      const at = plot.cursor.idx;
      if (at === null || at === undefined || plot.cursor.left < 0) { tip.hidden = true; return; }
      tip.replaceChildren(...rows(at));
      tip.hidden = false;
      const room = figureBox.getBoundingClientRect(), over = plot.over.getBoundingClientRect();
      const left = over.left - room.left + plot.cursor.left;
      const after = left + 16, before = left - tip.offsetWidth - 16; // at the side, so that it hides no bar that is next
      tip.style.left = (after + tip.offsetWidth > room.width ? Math.max(0, before) : after) + "px";
      tip.style.top = over.top - room.top + 8 + "px";
    };
  };

  const axes = (unit, time) => [
    { stroke: colour("--bs-secondary-color"), font: "12px " + getComputedStyle(document.body).fontFamily, grid: { show: false }, ticks: { stroke: colour("--bs-border-color"), size: 4 }, size: 28, ...time },
    { stroke: colour("--bs-secondary-color"), font: "12px " + getComputedStyle(document.body).fontFamily, grid: { stroke: colour("--bs-border-color"), width: 1 }, ticks: { show: false }, size: (_, values) => Math.max(48, ...(values || []).map((value) => 12 + 7 * value.length)), ...unit },
  ];

  // Incidents, repairs and changes of the model: a dashed line with the number that the list below the chart has.
  const drawMarks = (marks) => (plot) => {
    const scale = window.devicePixelRatio || 1, context = plot.ctx, { left, top, width, height } = plot.bbox;
    context.save();
    const ink = colour("--bs-body-color"), ground = colour("--bs-body-bg");
    context.strokeStyle = ink;
    context.textAlign = "center";
    context.lineWidth = scale;
    context.font = "600 " + 11 * scale + "px " + getComputedStyle(document.body).fontFamily;
    let row = 0, before = -Infinity;
    for (const [number, at] of marks) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < left - 1 || x > left + width + 1) continue;
      row = x - before < 16 * scale ? row + 1 : 0; // numbers of marks side by side stand below each other
      before = x;
      context.setLineDash([3 * scale, 3 * scale]);
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, top + height);
      context.stroke();
      const high = top + 14 * row * scale, wide = (number > 9 ? 18 : 13) * scale;
      const middle = Math.min(Math.max(x, left + wide / 2), left + width - wide / 2);
      context.setLineDash([]);
      context.fillStyle = ground; // the number is legible over bars of any colour
      context.fillRect(middle - wide / 2, high, wide, 13 * scale);
      context.strokeRect(middle - wide / 2, high, wide, 13 * scale);
      context.fillStyle = ink;
      context.fillText(String(number), middle, high + 10 * scale);
    }
    context.restore();
  };

  // Bars of parts that are not whole are paler.
  const fade = (parts) => (plot) => {
    const context = plot.ctx, { top, height } = plot.bbox;
    context.save();
    context.globalAlpha = 0.55;
    context.fillStyle = colour("--bs-body-bg");
    for (const at of parts) {
      const left = plot.valToPos(at - 0.5, "x", true);
      context.fillRect(left, top, plot.valToPos(at + 0.5, "x", true) - left, height);
    }
    context.restore();
  };

  // Bars stacked by side: the highest sum is drawn first, the others over it.
  const stack = (box, data, height, hidden) => {
    const starts = data.limits.slice(0, -1), ends = data.limits.slice(1);
    const day = ends[0] - starts[0] >= 86400 - 7200 || (starts.length > 1 && ends[1] - starts[1] >= 82800);
    const shown = (place) => moment(data.limits[place] + data.offsets[place], day);
    const sums = starts.map(() => 0);
    const layers = data.series.filter((series) => !hidden.has(series.name)).map((series) => ({ name: series.name, colour: colour(series.colour), values: series.values, top: series.values.map((value, at) => (sums[at] += value)) })).reverse();
    const rows = (at) => {
      const until = shown(at + 1);
      const list = make("table");
      for (const layer of layers) {
        if (!layer.values[at]) continue;
        const row = list.insertRow();
        row.insertCell().append(make("span", "side " + layer.name, layer.name));
        row.insertCell().textContent = figure(layer.values[at]);
      }
      const total = list.insertRow();
      total.insertCell().textContent = hidden.size ? "total of those shown" : "total";
      total.insertCell().append(make("strong", "", figure(sums[at]) + " " + data.unit));
      return [make("strong", "", shown(at) + (day ? "" : " – " + until.slice(6)) + (data.partial.includes(at) ? " (not whole)" : "")), list];
    };
    const show = tooltip(box, rows);
    const go = (from, to) => {
      const target = new URL(box.dataset.zoom, location.href);
      target.searchParams.set("since", iso(starts[from]));
      target.searchParams.set("until", iso(ends[to]));
      location.assign(target.href);
    };
    const options = {
      width: 300, height, legend: { show: false }, padding: [8, 4, 0, 0],
      scales: { x: { time: false, range: () => [-0.5, starts.length - 0.5] }, y: { range: (_, __, high) => [0, Math.max(1, high) * 1.05] } },
      axes: axes({ values: (_, ticks) => ticks.map(figure), ...(data.whole ? { incrs: WHOLE } : {}) }, {
        splits: () => { const every = Math.max(1, Math.ceil(starts.length / Math.max(2, Math.floor(box.clientWidth / 110)))); return starts.map((_, at) => at).filter((at) => at % every === 0); },
        values: (_, ticks) => ticks.map((tick, at) => { // the date stands only where it is another one than at the label before
          const time = shown(tick);
          return at && !day && shown(ticks[at - 1]).slice(0, 5) === time.slice(0, 5) ? time.slice(6) : time;
        }),
      }),
      series: [{}, ...layers.map((layer) => ({ label: layer.name, fill: layer.colour, stroke: layer.colour, width: 0, paths: uPlot.paths.bars({ size: [0.82, 60], align: 0 }), points: { show: false } }))],
      cursor: { y: false, points: { show: false }, drag: { x: Boolean(box.dataset.zoom), y: false, setScale: false, dist: 6, click: (plot, event) => { if (plot.select.width >= 4) event.stopImmediatePropagation(); } } },
      hooks: {
        draw: [fade(data.partial), drawMarks(data.marks.map(([number, place]) => [number, place - 0.5]))],
        setCursor: [show],
        setSelect: [(plot) => {
          if (!box.dataset.zoom || plot.select.width < 4) return;
          const clamp = (left) => Math.max(0, Math.min(starts.length - 1, Math.round(plot.posToVal(left, "x"))));
          go(clamp(plot.select.left), clamp(plot.select.left + plot.select.width));
        }],
        ready: [(plot) => plot.over.addEventListener("click", () => {
          if (box.dataset.zoom && plot.cursor.idx !== null && plot.select.width < 4) go(plot.cursor.idx, plot.cursor.idx);
        })],
      },
    };
    return [options, [starts.map((_, at) => at), ...layers.map((layer) => layer.top)]];
  };

  // One share over time, or one share against another; both axes in percent.
  const line = (box, data, height) => {
    const percent = (value) => (value === null ? "–" : (value * 100).toFixed(1) + " %");
    const name = (value) => (data.time ? moment(value, true) : percent(value));
    const rows = (at) => {
      const list = make("table");
      for (const series of data.series) {
        if (series.values[at] === null || series.values[at] === undefined) continue;
        const row = list.insertRow();
        row.insertCell().textContent = series.name;
        row.insertCell().append(make("strong", "", percent(series.values[at])));
      }
      return [make("strong", "", (data.right ? data.right + " " : "") + name(data.at[at])), list];
    };
    const low = Math.min(...data.series[0].values.filter((value) => value !== null));
    const floor = Math.max(0, Math.min(data.time ? 1 : data.from, Math.floor(low * 20 - 0.5) / 20));
    const first = Math.min(data.from, ...data.at);
    const strokes = [colour("--bs-link-color"), colour("--bs-tertiary-color")];
    const options = {
      width: 300, height, legend: { show: false }, padding: [10, 26, 0, 0],
      scales: { x: { time: false, range: data.time ? undefined : () => [first, 1] }, y: { range: () => [floor, 1] } },
      axes: axes({ values: (_, ticks) => ticks.map((value) => Math.round(value * 100) + " %"), label: data.up, labelSize: data.up ? 18 : 0, labelFont: "12px sans-serif" },
        { values: (_, ticks) => ticks.map((value) => (data.time ? name(value) : Math.round(value * 100) + " %")), space: 80, label: data.right, labelSize: data.right ? 18 : 0, labelFont: "12px sans-serif", size: 28 }),
      series: [{}, ...data.series.map((series, at) => ({ label: series.name, stroke: strokes[at] || strokes[1], width: at ? 1 : 2, dash: at ? [4, 4] : undefined, spanGaps: true, points: { show: !at, size: 6, fill: strokes[0] } }))],
      cursor: { y: false, drag: { x: false, y: false } },
      hooks: { draw: [drawMarks(data.marks)], setCursor: [tooltip(box, rows)] },
    };
    return [options, [data.at, ...data.series.map((series) => series.values)]];
  };

  // The sides in a legend show and hide their bars in all charts of the section.
  const legends = new WeakMap();
  const legendOf = (section) => {
    if (legends.has(section)) return legends.get(section);
    const made = { hidden: new Set(), paints: [] };
    legends.set(section, made);
    section.querySelectorAll(".legend .side").forEach((label) => {
      const button = make("button", label.className, label.textContent), name = button.textContent.trim();
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.title = "show or hide " + name;
      button.addEventListener("click", () => {
        const show = made.hidden.delete(name);
        if (!show) made.hidden.add(name);
        button.setAttribute("aria-pressed", String(show));
        made.paints.forEach((paint) => paint());
      });
      label.replaceWith(button);
    });
    return made;
  };

  const draw = (box) => {
    const data = JSON.parse(box.dataset.chart);
    if (!(data.limits ? data.limits.length > 1 : data.at.length)) return;
    const replaced = [...box.children].filter((child) => child.matches(".plot, svg, .axis"));
    const place = make("div", "drawn");
    place.setAttribute("aria-hidden", "true"); // the table behind the chart has the same figures
    const legend = data.kind === "stack" ? legendOf(box.closest("section") || box) : { hidden: new Set(), paints: [] };
    let plot = null;
    const paint = () => {
      if (plot) { plot.destroy(); box.querySelectorAll(".tip").forEach((tip) => tip.remove()); }
      const [options, values] = (data.kind === "stack" ? stack : line)(box, data, data.height || 190, legend.hidden);
      options.width = Math.max(200, box.clientWidth);
      plot = new uPlot(options, values, place);
    };
    (replaced[0] || box.lastElementChild).before(place);
    replaced.forEach((child) => child.setAttribute("hidden", "")); // the property does not exist on SVG
    paint();
    legend.paints.push(paint);
    dark.addEventListener("change", paint);
    new ResizeObserver(() => { if (plot && Math.abs(plot.width - box.clientWidth) > 1 && box.clientWidth > 0) plot.setSize({ width: Math.max(200, box.clientWidth), height: plot.height }); }).observe(box);
  };
  const all = (root) => root.querySelectorAll("[data-chart]").forEach((box) => { if (!box.querySelector(".drawn")) draw(box); });
  all(document);
  document.addEventListener("htmx:afterSettle", () => all(document));
})();
