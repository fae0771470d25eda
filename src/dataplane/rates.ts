/** Bytes that were moved in the last whole second, computed only when read. */
import type { LiveTable } from "./connections.ts";

export interface Rates {
  readonly uploadRate: number;
  readonly downloadRate: number;
}

const SECOND_MS = 1000;

export class RateMeter implements Disposable {
  lastSecond: Rates = { uploadRate: 0, downloadRate: 0 };
  readonly #live: LiveTable;
  readonly #timer: NodeJS.Timeout;
  #upload: number;
  #download: number;

  constructor(live: LiveTable) {
    this.#live = live;
    this.#upload = live.uploadTotalBytes;
    this.#download = live.downloadTotalBytes;
    this.#timer = setInterval(() => this.#tick(), SECOND_MS).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const { uploadTotalBytes, downloadTotalBytes } = this.#live;
    const uploadRate = uploadTotalBytes - this.#upload;
    const downloadRate = downloadTotalBytes - this.#download;
    this.#upload = uploadTotalBytes;
    this.#download = downloadTotalBytes;
    this.lastSecond = { uploadRate, downloadRate };
  }
}
