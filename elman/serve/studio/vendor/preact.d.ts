export function h(...parts: any[]): any;
export function render(what: any, where: Element): void;
export const Fragment: any;
