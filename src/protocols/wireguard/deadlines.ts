/** A few moments at which something is due, by one timer that holds no process. */
export class Deadlines<Name extends string> implements Disposable {
  readonly #nowMs: () => number;
  readonly #work: Readonly<Record<Name, () => void>>;
  readonly #dueMs = new Map<Name, number>();
  #timer: NodeJS.Timeout | undefined;
  #armedMs = Infinity;

  constructor(nowMs: () => number, work: Readonly<Record<Name, () => void>>) {
    this.#nowMs = nowMs;
    this.#work = work;
  }

  /** In place of the moment that was set before. Costs no timer where an earlier one is due. */
  set(name: Name, atMs: number): void {
    this.#dueMs.set(name, atMs);
    if (atMs < this.#armedMs) this.#arm(atMs);
  }

  /** Where none is set. */
  setOnce(name: Name, atMs: number): void {
    if (!this.#dueMs.has(name)) this.set(name, atMs);
  }

  clear(name: Name): void {
    this.#dueMs.delete(name);
  }

  #arm(atMs: number): void {
    clearTimeout(this.#timer);
    this.#armedMs = atMs;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, atMs - this.#nowMs())).unref();
  }

  #fire(): void {
    this.#armedMs = Infinity;
    const nowMs = this.#nowMs();
    for (const [name, atMs] of this.#dueMs) {
      if (atMs > nowMs || this.#dueMs.get(name) !== atMs) continue;
      this.#dueMs.delete(name);
      this.#work[name]();
    }
    const next = Math.min(...this.#dueMs.values());
    if (next < this.#armedMs) this.#arm(next);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#dueMs.clear();
  }
}
