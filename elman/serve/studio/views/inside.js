// Inside: every view of `elman explain` that the model has, on any text, drawn by the service.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn} from "../draw.js";
import {Choice, Field, html, Trouble, useEffect, useRequest} from "../ui.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Model} Model */

/** @param {{model: Model}} props */
export function Inside({model}) {
  const {answer, error, busy, run} = useRequest();
  const view = model.views.find(({name}) => name === address.value.look) ?? model.views[0];
  const text = address.value.text ?? "";
  const body = {model: model.id, input: text.split("\n").filter(Boolean), view: view?.name, options: view ? optionValues(view) : {}};
  const draw = () => { if (body.input.length) run((signal) => ask("/v1/explain", {...body, format: "panels"}, signal)); };
  useEffect(draw, [view?.name]);
  if (!view) return html`<p>There is no view of this model.</p>`;
  /** @param {string} name */
  const choose = (name) => {
    answer.value = null;
    go({...noOptions(), look: name}, {step: true});
  };
  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); draw(); }}>
    <div>
      <${Field} name="Text" hint="each line is a text of its own">
        <textarea value=${text} onInput=${(/** @type {any} */ e) => go({text: e.target.value})}
          onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) draw(); }}></textarea><//>
      <div class="row"><button type="submit">Look</button>${busy.value && html`<span class="quietly" role="status">at work …</span>`}</div>
      <${Trouble} error=${error.value} />
      <div class=${busy.value ? "busy" : ""}>${answer.value && html`<${Panels} drawn=${answer.value} /><${SaveDrawn} path="/v1/explain" body=${body} name=${`${model.id}-${view.name}`} />`}</div>
    </div>
    <div class="controls" role="group" aria-label="view">
      <${Choice} name="view" value=${view.name} choices=${model.views.map(({name}) => name)} change=${choose} />
      <p class="quietly">${view.about}</p>
      <${Options} view=${view} labels=${model.labels} />
    </div></form>`;
}
