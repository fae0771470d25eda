/** The TLS of a listener in tests, with a certificate of its own for `server.test`. */
import assert from "node:assert/strict";
import * as z from "zod";
import { NO_CHALLENGES, type TlsChallenges } from "#core/acme.ts";
import { SILENT } from "#core/log.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import type { TlsServer } from "#core/tls.ts";
import type { NativeTls } from "#platform/tls.ts";
import { openTlsServer } from "#transport/tls/server.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "./certificate.ts";
import { textFiles } from "./text-files.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const fields = z
  .object(tlsServerFields)
  .parse({ certificate: certificate.cert, "private-key": certificate.key });

/** `native` null: by node:tls. */
export function openListenerTls(
  native: NativeTls | null = null,
  alpn: readonly string[] = [],
  challenges: TlsChallenges = NO_CHALLENGES,
): Promise<TlsServer> {
  const options = readTlsServer(fields, "listener test", { alpn });
  assert.ok(options !== null);
  return openTlsServer(options, { files: textFiles, log: SILENT, native, challenges });
}
