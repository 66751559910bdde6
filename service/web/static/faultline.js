// What makes pages more pleasant, and nothing they need: the keyboard, forms in place, new failures as they come.
"use strict";
(() => {
  const OFF = "faultline-keys-off";
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const store = (name, value) => { try { if (value === null) localStorage.removeItem(name); else localStorage.setItem(name, value); } catch { /* private window */ } };

  // j and k go from row to row, Enter opens, ? tells. Off for good by the button of the help.
  // Rows in a folded part cannot be focused.
  const linkOf = (row) => row.querySelector(".what a") || row.querySelector("a");
  const rows = () => [...document.querySelectorAll("main table.list tbody tr, main [data-row]")].filter((row) => linkOf(row)?.getClientRects().length);
  const mark = (row) => {
    document.querySelectorAll("main .here").forEach((one) => one.classList.remove("here"));
    row.classList.add("here");
  };
  // From the row in which the focus is, or else from the one where it was.
  const go = (step) => {
    const found = rows();
    if (!found.length) return;
    const focused = found.findIndex((row) => row.contains(document.activeElement));
    const at = focused >= 0 ? focused : found.findIndex((row) => row.classList.contains("here"));
    const row = found[Math.max(0, Math.min(found.length - 1, at + step))];
    mark(row);
    linkOf(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const help = () => {
    let box = document.getElementById("keys");
    if (box?.open) { box.close(); return; }
    box?.remove(); // closed, and its event is still to come
    box = document.createElement("dialog");
    box.id = "keys";
    box.setAttribute("aria-label", "Keyboard");
    const off = stored(OFF) === "1";
    const steps = document.querySelector("[data-log]") ? [["j", "next evidence or found line"], ["k", "previous evidence or found line"]] : [["j", "next row"], ["k", "previous row"], ["Enter", "open the row"], ["x", "select the row"], ["a", "go to the actions of the selected rows"]];
    const lines = [["/", "search"], ...steps, ["?", "this help"]];
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
    close.autofocus = true; // Enter closes the help; it does not switch the keys off
    close.addEventListener("click", () => box.close());
    box.append(list, change, " ", close);
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = document.getElementById("search");
    if (event.key === "Escape" && event.target === box && !box.value) { box.blur(); return; } // the first one empties the box
    if (event.target.closest("input, select, textarea, [contenteditable], dialog:not(#keys)")) return;
    if (event.key === "?") { event.preventDefault(); help(); return; }
    if (stored(OFF) === "1" || event.target.closest("dialog")) return;
    if (event.key === "/" && box) { event.preventDefault(); box.focus(); box.select(); return; }
    if (event.key === "j") { event.preventDefault(); go(1); }
    else if (event.key === "k") { event.preventDefault(); go(-1); }
    else if (event.key === "x") { const tick = document.querySelector("main .here input[type=checkbox]"); if (tick) { event.preventDefault(); tick.click(); } }
    else if (event.key === "a") { const first = document.querySelector("main .bulk :is(select, button:not([disabled]))"); if (first) { event.preventDefault(); first.focus(); } }
  });

  const make = (tag, text) => { const made = document.createElement(tag); if (text !== undefined) made.textContent = text; return made; };

  // Messages at the edge of the window stay until they are closed or the next one comes.
  const toast = (content, role) => {
    const box = make("div"), close = make("button", "Close");
    box.className = "toast show";
    box.setAttribute("role", role);
    content.removeAttribute("role");
    close.type = "button";
    close.className = "small";
    close.addEventListener("click", () => box.remove());
    box.append(content, close);
    document.getElementById("toasts")?.append(box);
    return box;
  };
  const forgetFailure = () => document.querySelectorAll("#toasts [data-failure]").forEach((one) => one.remove());
  const tellFailure = (...content) => {
    const text = make("p");
    text.append(...content);
    forgetFailure();
    toast(text, "alert").dataset.failure = "";
  };

  // Boxes of a list: how many are ticked, and all of them at once.
  const countTicks = (main) => main.querySelectorAll("[data-ticked]").forEach((label) => {
    const form = label.dataset.ticked;
    const boxes = [...document.querySelectorAll("input[type=checkbox]")].filter((box) => box.getAttribute("form") === form);
    const all = document.querySelector("[data-tick=" + form + "]");
    const count = () => {
      const ticked = boxes.filter((box) => box.checked).length;
      // Nothing is selected: nothing can be done. Without scripts the server says so.
      document.querySelectorAll("#" + form + " button:not([hidden])").forEach((button) => { button.disabled = !ticked; });
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
  });

  // Commands, the address of a page, and the text of an element that may be folded are copied with one click.
  const offerCopies = (main) => main.querySelectorAll("[data-copy]").forEach((code) => {
    if (!navigator.clipboard) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    const what = code.dataset.copy, text = { address: () => location.href, "": () => code.textContent }[what] || (() => document.getElementById(what).textContent);
    button.textContent = { address: "Copy link", "": "Copy" }[what] || "Copy message";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    });
    code.after(" ", button);
  });

  // New failures are offered, never pushed in: tables stand still. A new incident is shown as a toast.
  let source = null, known = null; // the newest incident that was open or told of
  const listen = () => {
    if (source) source.close();
    const place = document.querySelector("main [data-live]");
    if (!place || document.hidden || !window.EventSource) return;
    const filters = place.dataset.filters ? "&" + place.dataset.filters.slice(1) : "";
    source = new EventSource("/live?after=" + encodeURIComponent(place.dataset.live) + (known === null ? "" : "&incident=" + known) + filters);
    source.addEventListener("open_incident", (event) => { known = Math.max(known ?? 0, JSON.parse(event.data).id); });
    source.addEventListener("failures", (event) => {
      const count = JSON.parse(event.data).new;
      if (!count) return;
      const link = place.querySelector("a");
      link.textContent = (count >= 500 ? "500 or more" : String(count)) + (count === 1 ? " new failure, show" : " new failures, show");
      place.hidden = false;
    });
    source.addEventListener("incident", (event) => {
      const { id, title, jobs } = JSON.parse(event.data);
      known = id;
      const text = make("p"), link = make("a", "I-" + id + " " + title);
      link.href = "/incidents/" + id;
      text.append("New incident: ", link, jobs ? " · " + jobs + (jobs === 1 ? " job" : " jobs") : "");
      toast(text, "alert");
    });
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-live] a");
    if (!link || !window.htmx || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const known = new Set([...document.querySelectorAll("table.failures .what a")].map((one) => one.getAttribute("href")));
    const selected = new Set([...document.querySelectorAll("main input[type=checkbox]:checked")].map((one) => one.value));
    const read = document.querySelector("main .here .what a")?.getAttribute("href");
    load("GET", link.href, link).then(() => {
      document.querySelectorAll("main input[type=checkbox]").forEach((one) => {
        if (selected.has(one.value)) { one.checked = true; one.dispatchEvent(new Event("change")); }
      });
      const row = read && [...document.querySelectorAll("table.failures .what a")].find((one) => one.getAttribute("href") === read)?.closest("tr");
      if (row) mark(row);
      document.getElementById("main").focus({ preventScroll: true });
      const added = [...document.querySelectorAll("table.failures .what a")].filter((one) => !known.has(one.getAttribute("href"))).map((one) => one.closest("tr"));
      added.forEach((row) => row.classList.add("fresh"));
      if (added.length) added[added.length - 1].scrollIntoView({ block: "nearest" });
    });
  });

  // Forms of the main part are sent in place: what one reads stays where it is, and the message comes as a toast.
  const MAIN = { target: "#main", select: "#main", swap: "outerHTML show:none" };
  const load = (verb, address, from, values = {}) => {
    const main = document.getElementById("main");
    main.inert = true; // until the answer is there: what one types meanwhile would be lost
    main.setAttribute("aria-busy", "true");
    return window.htmx.ajax(verb, address, { ...MAIN, source: from, values }).catch(() => undefined).finally(() => { main.inert = false; main.removeAttribute("aria-busy"); }); // htmx:sendError tells why
  };
  document.addEventListener("submit", (event) => {
    const form = event.target, pressed = event.submitter;
    // Fields can be named "action" and "method": only the attributes are certain.
    if (form.getAttribute("method") !== "post") return;
    if (!window.htmx || !form.closest("main, .toast") || form.closest(".outside") || form.dataset.whole !== undefined) {
      // The browser would show the answer to the last of two clicks only: without the secret of the token that the first one created.
      if (form.dataset.sent !== undefined) event.preventDefault();
      form.dataset.sent = "";
      setTimeout(() => { delete form.dataset.sent; }, 5000);
      return;
    }
    event.preventDefault();
    sent = true;
    load("POST", pressed && pressed.hasAttribute("formaction") ? pressed.formAction : form.getAttribute("action") || location.href, form, pressed && pressed.name ? { [pressed.name]: pressed.value } : {});
  });
  let sent = false, opened = new Set(), at = 0;
  const heading = (details) => { const summary = details.querySelector("summary"); return summary ? summary.textContent.trim() : ""; };
  document.addEventListener("htmx:beforeSwap", (event) => {
    const answered = new URL(event.detail.xhr.responseURL || location.href);
    if (event.detail.xhr.status < 400 && answered.pathname !== location.pathname) { // another page
      event.detail.shouldSwap = false;
      location.assign(answered.href);
      return;
    }
    opened = new Set([...document.querySelectorAll("main details[open]:not(.act)")].map(heading));
    at = window.scrollY;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const main = document.getElementById("main");
    main.querySelectorAll("details:not(.act)").forEach((one) => { if (opened.has(heading(one))) one.open = true; });
    begin(main); // its buttons take room, so before the page is put where it was
    if (sent) {
      const message = main.querySelector(".message[role=status]");
      document.querySelectorAll("#toasts [role=status]").forEach((one) => one.remove());
      forgetFailure();
      if (message) toast(message, "status");
      if (!main.contains(document.activeElement)) main.focus({ preventScroll: true });
    }
    window.scrollTo({ top: at, behavior: "instant" });
    sent = false;
  });
  document.addEventListener("htmx:responseError", (event) => {
    sent = false;
    if (event.detail.xhr.status === 401) {
      const link = make("a", "Log in");
      link.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
      tellFailure("You are no longer logged in. Nothing was changed. ", link);
      return;
    }
    const answer = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    const said = [...answer.querySelectorAll("main h1, main .reason")].map((one) => one.textContent).join(". ");
    tellFailure(said || "The request failed.");
  });
  document.addEventListener("htmx:sendError", () => {
    // The answer can be what was lost, not the request.
    tellFailure(sent ? "The server did not answer. Reload the page to see whether anything was changed." : "The server did not answer.");
    sent = false;
  });

  // What becomes of this failure's resubmit is put in its place as it comes; a comment that is being typed stays.
  let states = null;
  const follow = () => {
    if (states) states.close();
    const automation = document.getElementById("automation");
    if (!automation || !automation.dataset.stands || document.hidden || !window.EventSource) return;
    states = new EventSource(automation.dataset.at + "/live?stands=" + encodeURIComponent(automation.dataset.stands));
    const typed = () => automation.querySelector("input[name=comment]");
    states.addEventListener("automation", async () => {
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
  };

  // A browser keeps six connections to a server, for all of its tabs: only a page that is in view has one of them open.
  const stream = () => { listen(); follow(); };
  const quiet = () => { for (const one of [source, states]) if (one) one.close(); };
  window.addEventListener("pagehide", quiet);
  window.addEventListener("pageshow", (event) => { if (event.persisted) stream(); });
  document.addEventListener("visibilitychange", () => { if (document.hidden) quiet(); else stream(); });

  // Relative times go on. The clock is the server's: its time comes with the page.
  const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
  const started = Date.parse(document.body.dataset.now || "") - performance.now();
  const tick = () => {
    const now = (started + performance.now()) / 1000;
    for (const time of document.querySelectorAll("main time[datetime]")) {
      if (!/(?: ago|just now)$/.test(time.textContent)) continue;
      const seconds = now - Date.parse(time.dateTime) / 1000;
      const unit = UNITS.find(([name, size]) => seconds >= 2 * size || (name === "min" && seconds >= size));
      const text = unit ? Math.floor(seconds / unit[1]) + "\u00a0" + unit[0] + " ago" : "just now";
      if (time.textContent !== text) time.textContent = text;
    }
  };
  if (!Number.isNaN(started)) setInterval(tick, 20000);

  const begin = (main) => { countTicks(main); offerCopies(main); stream(); };
  begin(document);
})();
