declare class uPlot {
  constructor(options: any, data: (number | null | undefined)[][], target: HTMLElement);
  static paths: any;
  setData(data: (number | null | undefined)[][]): void;
  setSize(size: {width: number, height: number}): void;
  destroy(): void;
  valToPos(value: number, scale: string): number;
  root: HTMLElement;
  over: HTMLElement;
  scales: Record<string, {min: number | null, max: number | null}>;
  series: {label: string, stroke: string | ((plot: uPlot, number: number) => string), show: boolean}[];
  data: (number | null | undefined)[][];
}
export default uPlot;
