"use strict";
// Shows the tip of a part that is pointed at or has the focus. In each text, map, chart or tree one part can be reached
// with Tab; arrow keys, Home and End go on from there, Escape hides the tip. `root` is what was drawn, `tips` what there is
// to say of its parts, `tip` the element that shows it; listeners go with `signal`.
function watchPanels(root, tips, tip, signal) {
  const {strings, panels} = tips;
  const PARTS = {tokens: ":scope > span", map: "td:not(.corner)", lines: ".stop", points: ".point", tree: ".node"};
  const SHARE = /^(0\.\d+|1\.0+|\d\d?(\.\d+)? ?%|100(\.0+)? ?%)$/;
  const LONG = 1500, BLOCK = 150, LARGEST = 600, AHEAD = "400px 0px";  // tokens of a text, and of its parts; pixels
  let dismissed = false;
  let current = null;  // what the tip is about: a probe and its part

  const probes = [...root.querySelectorAll("[data-kind]")].map((element) => {
    const kind = element.dataset.kind;
    const parts = [...element.querySelectorAll(PARTS[kind])];
    return {element, kind, parts, places: new Map(parts.map((part, place) => [part, place])), tips: panels[element.dataset.tips]};
  }).filter((probe) => probe.parts.length);
  for (const probe of probes) if (probe.kind === "tokens" && probe.parts.length > LONG) inBlocks(probe);

  // Of a long text only what is seen is drawn, and a little more: what is far off stands there as plain text, of the same
  // height, so that it scrolls as smoothly as a short one. A block ends with a line where it can.
  function inBlocks(probe) {
    const blocks = [];
    let nodes = [], count = 0;
    const close = () => {
      const box = document.createElement("span"), own = nodes;
      const plain = own.map((node) => [...(node.childNodes.length ? node.childNodes : [node])].map((one) => one.nodeName === "BR" ? "\n" : one.textContent).join("")).join("");
      const block = {
        box, near: false,
        draw: () => { if (!own[0].isConnected) box.replaceChildren(...own); },
        rest: () => { box.textContent = plain; },
      };
      box.className = "block";
      blocks.push(block);
      for (const node of own) if (probe.places.has(node)) probe.blocks.set(node, block);
      [nodes, count] = [[], 0];
    };
    probe.blocks = new Map();
    for (const node of [...probe.element.childNodes]) {
      nodes.push(node);
      if (probe.places.has(node)) count++;
      if (count >= LARGEST || (count >= BLOCK && node.lastChild?.nodeName === "BR")) close();
    }
    if (nodes.length) close();
    const of = new Map(blocks.map((block) => [block.box, block]));
    const watch = new IntersectionObserver((entries) => {
      for (const {target, isIntersecting} of entries) {
        const block = of.get(target);
        block.near = isIntersecting;
        if (isIntersecting) block.draw();
        else if (probe.blocks.get(probe.reached) !== block) block.rest();  // what Tab comes to is always there
      }
    }, {rootMargin: AHEAD});
    for (const block of blocks) block.rest();
    probe.element.replaceChildren(...blocks.map(({box}) => box));
    for (const {box} of blocks) watch.observe(box);
    addEventListener("beforeprint", () => blocks.forEach((block) => block.draw()), {signal});
    signal?.addEventListener("abort", () => watch.disconnect());
  }

  function told(probe, part) {
    const place = probe.places.get(part);
    if (probe.kind === "map") {
      const row = part.parentElement, column = probe.element.rows[0].cells[part.cellIndex];
      return [`${row.cells[0].textContent} × ${column.textContent}`, "value", part.textContent.trim()];
    }
    return probe.tips[place].map((number) => strings[number]);
  }

  function show(probe, part) {
    const [heading, ...pairs] = told(probe, part);
    const title = document.createElement("strong"), list = document.createElement("dl");
    title.dir = "auto";
    title.textContent = heading;
    const shares = pairs.filter((text, at) => at % 2 && SHARE.test(text)).length > 2;  // a list of chances has bars
    for (let at = 0; at < pairs.length; at += 2) {
      const [name, value] = ["dt", "dd"].map((kind, side) => {
        const item = document.createElement(kind);
        item.dir = "auto";
        item.textContent = pairs[at + side];
        return item;
      });
      if (shares && SHARE.test(pairs[at + 1])) {
        value.className = "share";
        value.style.setProperty("--share", parseFloat(pairs[at + 1]) / (pairs[at + 1].endsWith("%") ? 100 : 1));
      }
      list.append(name, value);
    }
    tip.replaceChildren(title, ...(pairs.length ? [list] : []));
    tip.classList.toggle("kept", part === document.activeElement);
    tip.hidden = false;
    current = [probe, part];
    const box = (probe.kind === "lines" ? part.lastElementChild : part).getClientRects()[0] || part.getBoundingClientRect();
    const own = tip.getBoundingClientRect(), width = document.documentElement.clientWidth;
    const side = probe.kind === "lines";  // beside the line, not over what it is about
    const left = side ? (box.right + 12 + own.width < width ? box.right + 12 : box.left - 12 - own.width) : box.left;
    const below = side ? box.top + 8 : box.bottom + 8;
    const above = box.top - own.height - 8;
    tip.style.left = `${Math.max(8, Math.min(left, width - own.width - 8))}px`;
    tip.style.top = `${below + own.height < innerHeight || above < 0 ? below : above}px`;
  }

  function hide() {
    const held = probes.find((probe) => probe.places.has(document.activeElement));
    if (held && !dismissed) show(held, document.activeElement);
    else tip.hidden = true;
  }

  // One part of a probe has a place in the order of Tab, and is a button for those who hear the page; all others are
  // what they are, so that a text can be read on as a text.
  function reach(probe, part) {
    const button = probe.kind === "map" ? {} : {role: "button", "aria-label": told(probe, part)[0]};
    const reached = {tabindex: "0", "aria-describedby": "tip", ...button};
    for (const name of Object.keys(reached)) {
      if (probe.reached) probe.reached.removeAttribute(name);
      part.setAttribute(name, reached[name]);
    }
    const [left, block] = [probe.blocks?.get(probe.reached), probe.blocks?.get(part)];
    probe.reached = part;
    if (block) block.draw();
    const rest = () => { if (!left.near && probe.blocks.get(probe.reached) !== left) left.rest(); };
    if (left && left !== block) setTimeout(rest);  // once the focus has left it
  }

  // The part that is nearest in a direction: what lies aside counts more than what lies ahead.
  function nearest(probe, part, across, down) {
    const from = centre(part);
    let best = null, least = Infinity;
    for (const other of probe.parts) {
      if (other === part || !other.isConnected) continue;
      const to = centre(other), ahead = (to.x - from.x) * across + (to.y - from.y) * down;
      const aside = Math.abs((to.x - from.x) * down) + Math.abs((to.y - from.y) * across);
      const length = probe.kind === "tokens" ? ahead * 1000 + aside : ahead + 2 * aside;
      if (ahead > 3 && length < least) [best, least] = [other, length];
    }
    return best;
  }

  function centre(part) {
    const box = part.getClientRects()[0] || part.getBoundingClientRect();
    return {x: box.left + box.width / 2, y: box.top + box.height / 2};
  }

  function next(probe, part, key) {
    const {kind, parts} = probe, place = probe.places.get(part);
    const across = {ArrowLeft: -1, ArrowRight: 1}[key] || 0, down = {ArrowUp: -1, ArrowDown: 1}[key] || 0;
    if (key === "Home") return parts[0];
    if (key === "End") return parts[parts.length - 1];
    if (!across && !down) return null;
    if (kind === "lines") return parts[place + across - down];
    if (kind === "map") {
      const width = part.parentElement.cells.length - 1;
      if (across && Math.floor((place + across) / width) !== Math.floor(place / width)) return null;
      return parts[place + across + down * width];
    }
    if (kind === "tokens" && across) return parts[place + (getComputedStyle(probe.element).direction === "rtl" ? -across : across)];
    if (kind === "tree" && across < 0) return parts[Number(part.dataset.parent ?? place)];
    if (kind === "tree" && across > 0) return parts.find((other) => other.dataset.parent === String(place));
    return nearest(probe, part, across, down);
  }

  for (const probe of probes) {
    const {element} = probe;
    const partOf = (event) => {
      for (let node = event.target; node && node !== element; node = node.parentNode) if (probe.places.has(node)) return node;
      return null;
    };
    reach(probe, probe.parts[0]);
    element.addEventListener("pointerover", (event) => {
      const part = partOf(event);
      if (part) show(probe, part);
      else hide();
    });
    element.addEventListener("pointerleave", hide);
    element.addEventListener("focusin", (event) => {
      dismissed = false;
      if (probe.places.has(event.target)) show(probe, event.target);
    });
    element.addEventListener("focusout", () => { tip.hidden = true; });
    element.addEventListener("click", (event) => {
      const part = partOf(event);
      if (!part) return;
      reach(probe, part);
      part.focus({preventScroll: true});
      dismissed = false;
      show(probe, part);
    });
    element.addEventListener("keydown", (event) => {
      const part = partOf(event);
      if (!part || event.ctrlKey || event.metaKey || event.altKey) return;
      const to = next(probe, part, event.key);
      if (to === null && !event.key.startsWith("Arrow")) return;
      event.preventDefault();
      if (!to || to === part) return;
      reach(probe, to);
      to.focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    dismissed = true;
    tip.hidden = true;
  }, {signal});
  document.addEventListener("scroll", (event) => {
    if (current && event.target !== tip && !tip.hidden) show(...current);
  }, {capture: true, signal});

  // What goes on to the right fades there, and a line below says so.
  function sideways(box) {
    const wide = box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("more", wide && box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    let said = box.nextElementSibling;
    if (!said || said.className !== "sideways") {
      if (!wide) return;
      said = document.createElement("p");
      said.className = "sideways";
      said.textContent = "scroll →";
      said.setAttribute("aria-hidden", "true");
      box.after(said);
      box.addEventListener("scroll", () => sideways(box));
    }
    said.hidden = !wide;
  }

  // What is larger than its place is scrolled by keys as well, and so can have the focus, unless a part of it can.
  function scrolled() {
    for (const box of root.querySelectorAll(".scroll")) {
      sideways(box);
      const larger = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
      if (!larger || box.querySelector("[tabindex]")) continue;
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "more than is seen at once");
    }
  }
  scrolled();
  addEventListener("resize", scrolled, {signal});
  document.addEventListener("toggle", scrolled, {capture: true, signal});
}

// A page of its own has its tips beside it; the Studio calls `watchPanels` for each drawing that it puts in.
if (document.getElementById("tips")) {
  const tips = JSON.parse(document.getElementById("tips").textContent);
  watchPanels(document, tips, document.getElementById("tip"));
}
