/** Executables that begin to take over from a weir and fail at a step of it. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("failing-successor.ts", import.meta.url));
/** Where it is killed: before it says anything, and behind what it says and hears. */
export const DEATHS = ["start", "hello", "sockets", "checked", "stores", "ready", "go"] as const;

export class FailingLaunchers implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "weir-launcher-"));

  /** `step`: one of `DEATHS`, or what `failing-successor.ts` has besides. */
  path(step: string): string {
    const path = join(this.#folder, step);
    const words = [process.execPath, "--disable-warning=ExperimentalWarning", PROGRAM, step];
    writeFileSync(path, `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(" ")} "$@"\n`);
    chmodSync(path, 0o755);
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
