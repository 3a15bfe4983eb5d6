export interface Point<T> { data: T; x: number; y: number; depth: number; parent: Point<T> | null; descendants(): Point<T>[]; links(): {source: Point<T>; target: Point<T>}[]; }
export function stratify<T>(): {id(of: (d: T) => string): any; parentId(of: (d: T) => string | null): any} & ((data: T[]) => Point<T>);
export function tree<T>(): {nodeSize(size: [number, number]): (root: Point<T>) => Point<T>};
