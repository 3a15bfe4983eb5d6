export interface Signal<T> { value: T; peek(): T; subscribe(told: (value: T) => void): () => void }
export function signal<T>(value: T): Signal<T>;
export function useSignal<T>(value: T): Signal<T>;
export function computed<T>(make: () => T): {readonly value: T};
export function useComputed<T>(make: () => T): {readonly value: T};
export function effect(what: () => void | (() => void)): () => void;
export function batch<T>(what: () => T): T;
