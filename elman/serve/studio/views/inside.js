// Inside: every view of `elman explain` that the model has, on any text, drawn by the service; and units found by what they do.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn} from "../draw.js";
import {Choice, Field, html, Trouble, useRequest, useSettled} from "../ui.js";
import {noOptions, Options, optionValues} from "./options.js";
import {Units} from "./units.js";

/** @typedef {import("../types").Model} Model */

const PAUSE = 400;  // milliseconds without a change after which the view is drawn

/** The texts: a language model reads all of it as one, others read a text a line. @param {Model} model @param {string} text */
const textsOf = (model, text) => model.task === "lm" ? [text] : text.split("\n").filter((line) => line.trim());

/** @param {{model: Model}} props */
export function Inside({model}) {
  const {answer, error, busy, run, stop} = useRequest();
  const view = model.views.find(({name}) => name === address.value.look) ?? model.views[0];
  const text = address.value.text ?? "";
  const body = {model: model.id, input: textsOf(model, text), view: view?.name, options: view ? optionValues(view) : {}};
  const draw = () => {
    if (view && text.trim()) run((signal) => ask("/v1/explain", {...body, format: "panels"}, signal));
    else {
      stop();
      answer.value = null;
    }
  };
  useSettled(draw, PAUSE, [JSON.stringify(body)]);
  if (!view) return html`<p>There is no view of this model.</p>`;
  /** @param {string} name */
  const choose = (name) => {
    answer.value = null;
    go({...noOptions(), look: name}, {step: true});
  };
  /** What is marked in the text is the part that units are looked for in. @param {any} event */
  const marked = ({target}) => {
    const part = target.value.slice(target.selectionStart, target.selectionEnd);
    if (part.trim() && address.value.find) go({part});
  };
  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); draw(); }}>
    <div>
      <${Field} name="Text" hint=${model.task === "lm" ? undefined : model.task === "embed" ? "a word a line" : "each line is a text of its own"}>
        <textarea value=${text} onInput=${(/** @type {any} */ e) => go({text: e.target.value})} onSelect=${marked}
          onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) draw(); }}></textarea><//>
      <div class="row"><button type="submit">Look</button>${busy.value && html`<span class="quietly" role="status">at work …</span>`}</div>
      ${text.trim() && model.views.some(({name}) => name === "neurons") && html`<${Units} model=${model} text=${text} />`}
      <${Trouble} error=${error.value} />
      <div class=${busy.value ? "busy" : ""}>${answer.value && !error.value && html`<${Panels} drawn=${answer.value} /><${SaveDrawn} path="/v1/explain" body=${body} name=${`${model.id}-${view.name}`} />`}</div>
    </div>
    <div class="controls" role="group" aria-label="view">
      <${Choice} name="view" value=${view.name} choices=${model.views.map(({name}) => name)} change=${choose} />
      <p class="quietly">${view.about}</p>
      <${Options} view=${view} model=${model} />
    </div></form>`;
}
