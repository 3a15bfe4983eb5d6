/** What the service says of itself and its models, for `tsc --checkJs`. */
export interface Model {
  id: string;
  task: string;
  about: string;
  /** Labels of a model that writes by label; those that a classifier tells apart. */
  labels?: string[];
  /** Those of a tagger. */
  tags?: string[];
  /** What a language model's tokens are, and from where it writes. */
  tokens?: string;
  direction?: string;
  /** Whether a translator attends. */
  attends?: boolean;
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
  /** What a request may ask for at most. */
  limits: {max_bytes: number; max_texts: number; max_characters: number; max_tokens: number; max_beam: number; max_n: number};
  lab: View[];
}

export interface Alternative {
  text: string;
  logprob: number;
}

declare global {
  /** Of page.js: tips of what the service has drawn. */
  function watchPanels(root: ParentNode, tips: unknown, tip: HTMLElement, signal?: AbortSignal): void;
}
