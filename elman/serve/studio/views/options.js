// The options of a view of `elman explain`, or of an experiment of `elman lab`, as controls: their JSON schema says what they are.
import {address, go} from "../address.js";
import {Choice, Field, html, Typed} from "../ui.js";

/** @typedef {import("../types").Model} Model */
/** @typedef {import("../types").Option} Option */
/** @typedef {import("../types").View} View */

/** What an option is, where it may also be left out. @param {Option} option @returns {Option} */
const plain = (option) => option.anyOf?.find(({type}) => type !== "null") ?? option;

/** What a text says, as JSON has it. @param {Option} option @param {string} said @returns {unknown} */
function parsed(option, said) {
  const {type, items} = plain(option);
  if (type === "boolean") return said === "true";
  if (type === "number" || type === "integer") return Number(said);
  if (type === "array") return said.split(",").map((part) => part.trim()).filter(Boolean).map((part) => parsed(items ?? {}, part));
  return said;
}

/** What the address says of options: its keys that begin with `o.`. @returns {Record<string, string>} */
export const saidOptions = () => Object.fromEntries(Object.entries(address.value).filter(([key]) => key.startsWith("o.")).map(([key, value]) => [key.slice(2), value]));

/** No options any more, as a change of the address. */
export const noOptions = () => Object.fromEntries(Object.keys(saidOptions()).map((name) => [`o.${name}`, undefined]));

/** The options of a view that the address says, as the service wants them. @param {View} view */
export function optionValues(view) {
  const known = view.options.properties ?? {};
  return Object.fromEntries(Object.entries(saidOptions()).filter(([name]) => name in known).map(([name, value]) => [name, parsed(known[name], value)]));
}

/** Options that are one of a model's labels. */
const LABELS = ["target", "against", "label"];

/** Controls for the options of a view that mean something to the model. @param {{view: View, model?: Model}} props */
export function Options({view, model}) {
  const labels = model?.labels ?? model?.tags ?? [];
  return Object.entries(view.options.properties ?? {})
    .filter(([name, {description}]) => (name !== "label" || labels.length) && (model?.task === "tag" || !description?.startsWith("Taggers:")))
    .map(([name, option]) => html`<${Control} key=${name} name=${name} option=${option} labels=${LABELS.includes(name) ? labels : []} />`);
}

/** The words that an option may be, where its description lists them. @param {Option} option */
const listed = ({description}) => /^One of ([\w, -]+)[;.]/.exec(description ?? "")?.[1].split(", ");

/** @param {{name: string, option: Option, labels: string[]}} props */
function Control({name, option, labels}) {
  const {type, enum: known} = plain(option);
  const choices = known ?? listed(option) ?? (labels.length ? labels : undefined);
  const usual = option.default === null || option.default === undefined ? "" : String(option.default);
  const value = saidOptions()[name] ?? "", shown = name.replaceAll("_", " ");
  /** @param {string} to */
  const change = (to) => go({[`o.${name}`]: to === usual ? undefined : to});
  if (choices) return html`<${Choice} name=${shown} value=${value || usual} choices=${usual ? choices : [["", "—"], ...choices]} change=${change} />`;
  if (type === "boolean") return html`<${Field} name=${shown} hint=${option.description}><input type="checkbox" checked=${(value || usual) === "true"} onChange=${(/** @type {any} */ e) => change(String(e.target.checked))} /><//>`;
  return html`<${Field} name=${shown} hint=${option.description}><${Typed} title=${option.description} type=${type === "number" || type === "integer" ? "number" : "text"} step=${type === "integer" ? 1 : "any"}
    value=${value} placeholder=${usual} change=${change} /><//>`;
}
