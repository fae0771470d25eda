/** The program as people install it: a build of this checkout in a folder of its own. */
import { execFile } from "node:child_process";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface BuiltProgram extends Disposable {
  /** Of the launcher. */
  readonly path: string;
}

/** Takes ten seconds. */
export async function builtProgram(): Promise<BuiltProgram> {
  const out = mkdtempSync(join(tmpdir(), "weir-built-"));
  const remove = (): void => rmSync(out, { recursive: true });
  try {
    const platform = ["--platform", `${process.platform}-${process.arch}`];
    const args = [join(root, "scripts", "build.mjs"), ...platform, "--no-archive", "--no-deb", "--out", out];
    await promisify(execFile)(process.execPath, args);
    const [path] = globSync(join(out, "*", "weir"));
    if (path === undefined) throw new Error(`no launcher in ${out}`);
    return { path, [Symbol.dispose]: remove };
  } catch (error) {
    remove();
    throw error;
  }
}
