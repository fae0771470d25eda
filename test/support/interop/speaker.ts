import type { Cell } from "./cells.ts";

/** A program ready to be started: its command, and the files it wants. `{}/` stands for their folder. */
export interface Launch {
  readonly command: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

export interface Speaker {
  /** The program's name on the PATH. */
  readonly program: string;
  readonly version: readonly string[];
  /** Why it cannot be run here, where the program alone does not say; false: it can. */
  absent?(): string | false;
  /** Serves the cell on a port of 127.0.0.1 and dials directly; null: it does not know how. */
  server(cell: Cell, port: number): Launch | null;
  /** SOCKS5 on `socksPort`, everything through a server of the cell on `port`; null: it does not know how. */
  client(cell: Cell, socksPort: number, port: number): Launch | null;
}

/** PEM as lists of lines, which some configurations want. */
export const lines = (pem: string): string[] => pem.trim().split("\n");
