import { PacketWindow } from "./packet-window.ts";

/** Windows of ended sessions in one generation, 1 KiB each. A full generation becomes the old one, and the old one is forgotten. */
const MOST_ENDED = 4096;

interface Held {
  readonly window: PacketWindow;
  holders: number;
}

/** Windows of sessions by their keys: held while anything has the session, and remembered at least `rememberMs` longer. */
export class PacketWindows {
  readonly #rememberMs: number;
  readonly #now: () => number;
  readonly #held = new Map<string, Held>();
  #ended = new Map<string, PacketWindow>();
  #older = new Map<string, PacketWindow>();
  #rotatedAtMs: number;

  constructor(rememberMs: number, now: () => number = () => performance.now()) {
    this.#rememberMs = rememberMs;
    this.#now = now;
    this.#rotatedAtMs = now();
  }

  /** The window that is known, or a new one, which nothing keeps until it is held. */
  of(key: string): PacketWindow {
    this.#expire();
    return this.#held.get(key)?.window ?? this.#ended.get(key) ?? this.#older.get(key) ?? new PacketWindow();
  }

  hold(key: string, window: PacketWindow): Disposable {
    const held = this.#held.get(key) ?? { window, holders: 0 };
    held.holders++;
    this.#held.set(key, held);
    return {
      [Symbol.dispose]: () => {
        if (--held.holders > 0) return;
        this.#held.delete(key);
        this.#expire();
        if (this.#ended.size >= MOST_ENDED) this.#rotate();
        this.#ended.set(key, held.window);
      },
    };
  }

  #expire(): void {
    const ageMs = this.#now() - this.#rotatedAtMs;
    if (ageMs < this.#rememberMs) return;
    if (ageMs >= 2 * this.#rememberMs) this.#ended.clear();
    this.#rotate();
  }

  #rotate(): void {
    this.#older = this.#ended;
    this.#ended = new Map();
    this.#rotatedAtMs = this.#now();
  }
}
