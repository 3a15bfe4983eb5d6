// What is seen stands in the address, so that it can be sent to a colleague and the back button works.
//   #/write?model=shakespeare&prompt=To+be
import {batch, signal} from "./vendor/signals.js";

/** @typedef {{view: string} & Record<string, string>} Address */

/** @returns {Address} */
function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {...Object.fromEntries(new URLSearchParams(query)), view: path};
}

/** What the address says now. */
export const address = signal(read());

/** How often the back button, or someone who wrote an address, has changed it: views that wait for a button follow then. */
export const moved = signal(0);

/**
 * Change some of it; an empty value takes a key away. Moving to another view or model makes a step that the back button
 * takes back, typing does not.
 * @param {Record<string, string | number | undefined>} change
 * @param {{step?: boolean}} [how]
 */
export function go(change, {step = false} = {}) {
  const next = /** @type {Address} */ ({...address.value});
  for (const [key, value] of Object.entries(change)) {
    if (value === undefined || value === "") delete next[key];
    else next[key] = String(value);
  }
  next.view ??= "";
  const {view, ...rest} = next;
  const query = new URLSearchParams(rest).toString();
  const hash = `#/${view}${query ? `?${query}` : ""}`;
  if (hash !== location.hash) history[step ? "pushState" : "replaceState"](null, "", hash);
  address.value = next;
}

addEventListener("popstate", () => batch(() => {
  address.value = read();
  moved.value++;
}));
