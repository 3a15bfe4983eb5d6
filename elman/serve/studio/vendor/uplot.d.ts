declare class uPlot {
  constructor(options: any, data: (number | null | undefined)[][], target: HTMLElement);
  static paths: any;
  setData(data: (number | null | undefined)[][]): void;
  setSize(size: {width: number, height: number}): void;
  destroy(): void;
  ctx: CanvasRenderingContext2D;
}
export default uPlot;
