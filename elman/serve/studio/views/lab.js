// Lab: the experiments of the course, run by the service with options, drawn when they are done.
import {address, go} from "../address.js";
import {ask} from "../api.js";
import {Panels, SaveDrawn} from "../draw.js";
import {Choice, html, Trouble, useRequest} from "../ui.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Studio} Studio */

/** @param {{studio: Studio}} props */
export function Lab({studio}) {
  const {answer, error, busy, run, stop} = useRequest();
  const experiment = studio.lab.find(({name}) => name === address.value.experiment) ?? studio.lab[0];
  const body = {experiment: experiment.name, options: optionValues(experiment)};
  const start = () => run((signal) => ask("/v1/lab", {...body, format: "panels"}, signal));
  /** @param {string} name */
  const choose = (name) => {
    answer.value = null;
    go({...noOptions(), experiment: name}, {step: true});
  };
  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); start(); }}>
    <div>
      <p>${experiment.about}</p>
      <div class="row"><button type="submit" disabled=${busy.value}>Run</button>
        ${busy.value && html`<span class="quietly" role="status">running: seconds to two minutes</span><button type="button" class="quiet" onClick=${stop}>Stop</button>`}</div>
      <${Trouble} error=${error.value} />
      ${answer.value && html`<${Panels} drawn=${answer.value} /><${SaveDrawn} path="/v1/lab" body=${body} name=${experiment.name} />`}
    </div>
    <div class="controls" role="group" aria-label="experiment">
      <${Choice} name="experiment" value=${experiment.name} choices=${studio.lab.map(({name}) => name)} change=${choose} />
      <${Options} view=${experiment} />
    </div></form>`;
}
