// function commented() {}
import { x } from "y";

export default class Store<T> extends Base {
  private limit = 5;
  #secret?: string;
  static readonly names: string[] = ["a{", "b"];

  constructor(private a: string) {
    super();
    if (a) {
      function local() {}
    }
  }

  async load<K>(key: K): Promise<T> {
    return this.find(key);
  }

  get size() { return 1; }
}

export interface Shape { area(): number }
export type Alias = { a: string } | {
  b: string;
};
export enum Color { Red, Green }
namespace Tools {
  export function help(a: { b: string }): void {}
}
export const handler = async (req: Request) => {
  const local = `template } {
function notThis() {`;
};
const one = 1
const quotes = /[{"'`/]\/*/g, half = one / 2; // }
declare global {
  interface Window { x: number }
}
function* generate(): Iterable<number> {
  yield 1;
}
export abstract class Empty {}
