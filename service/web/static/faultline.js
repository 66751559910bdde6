// What makes pages more pleasant, and nothing they need: the keyboard, and word of new failures as they come.
"use strict";
(() => {
  const OFF = "faultline-keys-off";
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const store = (name, value) => { try { if (value === null) localStorage.removeItem(name); else localStorage.setItem(name, value); } catch { /* private window */ } };

  // j and k go from row to row, Enter opens, ? tells. Off for good by the button of the help.
  const rows = () => [...document.querySelectorAll("main table.list tbody tr, main [data-row]")].filter((row, at, all) => all.indexOf(row) === at && row.querySelector("a"));
  let here = -1;
  const go = (to) => {
    const found = rows();
    if (!found.length) return;
    found.forEach((row) => row.classList.remove("here"));
    here = Math.max(0, Math.min(found.length - 1, to));
    found[here].classList.add("here");
    const link = (found[here].querySelector(".what a") || found[here].querySelector("a"));
    link.focus({ preventScroll: true });
    found[here].scrollIntoView({ block: "nearest" });
  };
  const help = () => {
    let box = document.getElementById("keys");
    if (box) { box.close(); box.remove(); return; }
    box = document.createElement("dialog");
    box.id = "keys";
    box.setAttribute("aria-label", "Keyboard");
    const off = stored(OFF) === "1";
    const lines = [["/", "search"], ["j", "next row"], ["k", "previous row"], ["Enter", "open the row"], ["?", "this help"]];
    const list = document.createElement("dl");
    list.className = "pairs";
    for (const [key, what] of lines) {
      const term = document.createElement("dt"), label = document.createElement("dd"), kbd = document.createElement("kbd");
      kbd.textContent = key; term.append(kbd); label.textContent = what; list.append(term, label);
    }
    const change = document.createElement("button");
    change.textContent = off ? "Switch the keys on" : "Switch the keys off";
    change.addEventListener("click", () => { store(OFF, off ? null : "1"); box.close(); });
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => box.close());
    box.append(list, change, " ", close);
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [contenteditable], dialog")) return;
    if (event.key === "?") { event.preventDefault(); help(); return; }
    if (stored(OFF) === "1") return;
    const box = document.getElementById("search");
    if (event.key === "/" && box) { event.preventDefault(); box.focus(); box.select(); return; }
    if (event.key === "j") { event.preventDefault(); go(here + 1); }
    else if (event.key === "k") { event.preventDefault(); go(here - 1); }
  });

  // Boxes of a list: how many are ticked, and all of them at once.
  for (const label of document.querySelectorAll("[data-ticked]")) {
    const form = label.dataset.ticked;
    const boxes = [...document.querySelectorAll("input[type=checkbox]")].filter((box) => box.getAttribute("form") === form);
    const all = document.querySelector("[data-tick=" + form + "]");
    const count = () => {
      const ticked = boxes.filter((box) => box.checked).length;
      label.textContent = ticked + " selected:";
      if (all) all.textContent = ticked === boxes.length ? "select none" : "select all " + boxes.length;
      return ticked;
    };
    boxes.forEach((box) => box.addEventListener("change", count));
    if (all) all.addEventListener("click", (event) => {
      event.preventDefault();
      const to = count() !== boxes.length;
      boxes.forEach((box) => { box.checked = to; });
      count();
    });
    count();
  }

  // Commands can be copied with one click.
  for (const code of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    });
    code.after(" ", button);
  }

  // New failures are offered, never pushed in: tables stand still.
  const place = document.querySelector("[data-live]");
  if (place && window.EventSource) {
    const filters = place.dataset.filters ? "&" + place.dataset.filters.slice(1) : "";
    const source = new EventSource("/live?after=" + encodeURIComponent(place.dataset.live) + filters);
    source.addEventListener("failures", (event) => {
      const count = JSON.parse(event.data).new;
      if (!count) return;
      const link = place.querySelector("a");
      link.textContent = (count >= 500 ? "500 or more" : String(count)) + (count === 1 ? " new failure, show" : " new failures, show");
      place.hidden = false;
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // What becomes of this failure's resubmit is put in its place as it comes; a comment that is being typed stays.
  const automation = document.getElementById("automation");
  if (automation && automation.dataset.stands && window.EventSource) {
    const source = new EventSource(automation.dataset.at + "/live?stands=" + encodeURIComponent(automation.dataset.stands));
    const typed = () => automation.querySelector("input[name=comment]");
    source.addEventListener("automation", async () => {
      const answer = await fetch(automation.dataset.at);
      if (!answer.ok) return;
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("automation");
      if (!found) return;
      const opened = automation.querySelector("details[open]") !== null;
      const before = typed(), text = before ? before.value : "", focused = before && before === document.activeElement;
      automation.replaceChildren(...found.childNodes);
      const after = typed();
      if (after) { after.value = text; if (focused) after.focus(); }
      if (opened) automation.querySelectorAll("details").forEach((one) => { one.open = true; });
    });
    window.addEventListener("pagehide", () => source.close());
  }
})();
