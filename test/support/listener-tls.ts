/** The TLS of a listener in tests, with a certificate of its own for `server.test`. */
import assert from "node:assert/strict";
import { z } from "zod";
import { SILENT } from "#core/log.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import { openTlsServer, type TlsServer } from "#transport/tls/server.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "./certificate.ts";
import { textFiles } from "./text-files.ts";

const certificate = makeCertificate({ names: ["server.test"] });
const fields = z
  .object(tlsServerFields)
  .parse({ certificate: certificate.cert, "private-key": certificate.key });

/** `native` as `nativeTls()` answers: the library where there is one; null: node:tls. */
export function openListenerTls(
  native: Parameters<typeof openTlsServer>[3] = null,
  alpn: readonly string[] = [],
): Promise<TlsServer> {
  const options = readTlsServer(fields, "listener test", alpn);
  assert.ok(options !== null);
  return openTlsServer(options, textFiles, SILENT, native);
}
