import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Network } from "#core/session.ts";
import { startPeer } from "./peer.ts";

/**
 * Starts a program that wants its configuration in files. `{}` stands for their folder, in arguments and in files. The
 * folder goes with the program.
 */
export async function startPeerWithFiles(
  command: readonly string[],
  port: number,
  files: Readonly<Record<string, string>>,
  network: Network = "tcp",
): Promise<AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "peer-"));
  undo.defer(() => rm(folder, { recursive: true, force: true }));
  const filled = (text: string): string => text.replaceAll("{}/", `${folder}/`);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), filled(text));
  undo.use(await startPeer(command.map(filled), port, network));
  return undo.move();
}
