/** The terminal that a live view is drawn on. What it was is put back at the end, however that comes. */
import type { ReadStream, WriteStream } from "node:tty";
import type { Line } from "./screen.ts";

const ESCAPE = "\u001b[";
const ENTER = `${ESCAPE}?1049h${ESCAPE}?25l`;
const LEAVE = `${ESCAPE}0m${ESCAPE}?25h${ESCAPE}?1049l`;
const STYLES = { plain: "", head: `${ESCAPE}7m`, alarm: `${ESCAPE}31m` };
const FALLBACK_COLUMNS = 80;
const FALLBACK_ROWS = 24;

export interface TerminalEnv {
  readonly output: WriteStream;
  readonly input: ReadStream;
  readonly hasColour: boolean;
  onKey(key: string): void;
  onResize(): void;
}

export class Terminal implements Disposable {
  readonly #env: TerminalEnv;
  readonly #onData: (text: string) => void;
  readonly #onResize: () => void;

  constructor(env: TerminalEnv) {
    this.#env = env;
    this.#onData = (text) => {
      for (const key of text) env.onKey(key);
    };
    this.#onResize = () => env.onResize();
    const { input, output } = env;
    if (input.isTTY) {
      input.setRawMode(true);
      input.setEncoding("utf8").on("data", this.#onData);
    }
    output.on("resize", this.#onResize);
    output.write(ENTER);
  }

  get columns(): number {
    return this.#env.output.columns || FALLBACK_COLUMNS;
  }

  get rows(): number {
    return this.#env.output.rows || FALLBACK_ROWS;
  }

  /** A frame that a slow line has not taken yet is not added to: the next one shows more recent numbers anyway. */
  draw(lines: readonly Line[], foot: string): void {
    const { output, hasColour } = this.#env;
    if (output.writableNeedDrain) return;
    const drawn = lines.map(({ text, style }) =>
      hasColour && style !== "plain" ? `${STYLES[style]}${text}${ESCAPE}0m` : text,
    );
    const body = [...drawn, foot].map((text) => `${text}${ESCAPE}K`).join("\r\n");
    output.write(`${ESCAPE}H${body}${ESCAPE}J`);
  }

  [Symbol.dispose](): void {
    const { input, output } = this.#env;
    output.off("resize", this.#onResize);
    if (input.isTTY) {
      input.off("data", this.#onData);
      input.setRawMode(false);
      input.pause();
    }
    output.write(LEAVE);
  }
}
