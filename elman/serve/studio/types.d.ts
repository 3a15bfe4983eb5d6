/** What the service says of itself and its models, for `tsc --checkJs`. */
export interface Model {
  id: string;
  task: string;
  about: string;
  /** Labels of a model that writes by label; those that a classifier tells apart. */
  labels?: string[];
  /** The views of `elman explain` that it has. */
  views: View[];
}

export interface View {
  name: string;
  about: string;
  /** What can be asked of it: a JSON schema. */
  options: {properties?: Record<string, Option>};
}

export interface Option {
  type?: string;
  anyOf?: Option[];
  enum?: string[];
  items?: Option;
  description?: string;
  default?: unknown;
}

export interface Studio {
  version: string;
  runs: boolean;
  training: boolean;
  lab: View[];
}

export interface Alternative {
  text: string;
  logprob: number;
}

/** A token that was written, with its rank among all tokens and the likeliest ones in its place. */
export interface Written {
  text: string;
  logprob: number;
  rank: number;
  alternatives: Alternative[];
}

declare global {
  /** Of page.js: tips of what the service has drawn. */
  function watchPanels(root: ParentNode, tips: unknown, tip: HTMLElement, signal?: AbortSignal): void;
}
