// Lab: the experiments of the course, run by the service with options; what is being done is said as it is done.
import {address, go} from "../address.js";
import {events} from "../api.js";
import {Panels, SaveTexts} from "../draw.js";
import {Choice, html, Trouble, useRequest, useSignal} from "../ui.js";
import {noOptions, Options, optionValues} from "./options.js";

/** @typedef {import("../types").Studio} Studio */

/** @param {{studio: Studio}} props */
export function Lab({studio}) {
  const {answer, error, busy, run, stop} = useRequest();
  const said = useSignal("");
  const experiment = studio.lab.find(({name}) => name === address.value.experiment) ?? studio.lab[0];
  const start = () => run(async (signal) => {
    said.value = "";
    for await (const told of events("/v1/lab", {experiment: experiment.name, options: optionValues(experiment)}, signal)) {
      if (told.drawn) return told;
      said.value = told.said;
    }
    return null;
  });
  /** @param {string} name */
  const choose = (name) => {
    stop();
    answer.value = null;
    go({...noOptions(), experiment: name}, {step: true});
  };
  return html`<form class="split" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); start(); }}>
    <div>
      <p>${experiment.about}</p>
      <div class="row"><button type="submit" disabled=${busy.value}>Run</button>
        ${busy.value && html`<button type="button" class="quiet" onClick=${stop}>Stop</button><span class="quietly" role="status">${said.value || "seconds to two minutes"}</span>`}</div>
      <${Trouble} error=${error.value} />
      ${answer.value && html`<${Panels} drawn=${answer.value.drawn} /><${SaveTexts} svg=${() => answer.value.svg} data=${answer.value.data} name=${experiment.name} />`}
    </div>
    <div class="controls" role="group" aria-label="experiment">
      <${Choice} name="experiment" value=${experiment.name} choices=${studio.lab.map(({name}) => name)} change=${choose} />
      <${Options} view=${experiment} />
    </div></form>`;
}
