/** Lays arrays of words over shared memory, one behind the other from its start. */
export class WordLayout {
  readonly #memory: SharedArrayBuffer;
  /** What has been laid out up to now. */
  bytes = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#memory = memory;
  }

  take(length: number): Int32Array {
    const view = new Int32Array(this.#memory, this.bytes, length);
    this.bytes += view.byteLength;
    return view;
  }
}
