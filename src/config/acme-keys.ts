/** A listener, or the `tls` block, that asks for a certificate by ACME has the file of it as `certificate` and `private-key`. */
import { certifiedNames, certificateFile, namesFault, type AcmeSettings } from "#core/acme.ts";
import type { Context } from "./context.ts";
import type { Path } from "./report.ts";
import { isMapValue, type FileUse } from "./shape.ts";

/** Null: there is no `acme` block; "faulty": there is one, and its errors are reported. */
export type AcmeScope = AcmeSettings | "faulty" | null;

export interface AcmeAsking {
  readonly path: Path;
  /** Precedes messages: `listener 0: `. */
  readonly prefix: string;
}

/**
 * The value of a listener or of `tls`, its keys in the schema's spelling, with the file's path where it asks for names.
 * What cannot be is reported.
 */
export function withAcmeFile(
  { report }: Context,
  value: unknown,
  acme: AcmeScope,
  { path, prefix }: AcmeAsking,
): unknown {
  if (!isMapValue(value) || value["acme"] === undefined) return value;
  const names = certifiedNames().safeParse(value["acme"]);
  if (!names.success || names.data.length === 0) return value; // the schema says what is wrong with them
  const other = ["reality-config", "certificate", "private-key"].find((key) => isWritten(value[key]));
  const fault =
    other === "reality-config"
      ? "a REALITY listener shows the certificate of its dest and can have none of its own: acme and reality-config exclude each other"
      : other !== undefined
        ? `acme and ${other} exclude each other: the certificate is fetched, or it is given`
        : acme === null
          ? "needs the top-level block acme, with agree-tos: true"
          : namesFault(names.data);
  if (fault !== null) report.error([...path, "acme"], `${prefix}acme: ${fault}`);
  if (fault !== null || acme === null || acme === "faulty") return value;
  const file = certificateFile(acme, names.data);
  return { ...value, certificate: file, "private-key": file };
}

function isWritten(value: unknown): boolean {
  return value !== undefined && value !== "" && value !== null;
}

/** The folder as a use of files, where the file does not name it itself. */
export function folderUse({ files }: Context, acme: AcmeSettings | null): readonly FileUse[] {
  if (acme === null) return [];
  try {
    return [{ path: ["acme", "folder"], file: files.resolve(acme.folder) }];
  } catch {
    return []; // a path outside is an error of its own
  }
}
