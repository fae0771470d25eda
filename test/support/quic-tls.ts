/** TLS of both sides of QUIC for tests, with a certificate of their own. */
import assert from "node:assert/strict";
import { quicLibrary } from "#platform/quic.ts";
import { quicClientCrypto, readQuicTlsClient, serverTls } from "#transport/quic/native-tls.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import { clientTuning } from "#transport/tls/tuning.ts";
import { textFiles } from "./text-files.ts";
import { makeCertificate, type TestCertificate } from "./certificate.ts";

export const quicCertificate: TestCertificate = makeCertificate({ names: ["server.test"] });

/** `fingerprint` absent: the certificate above is pinned. Null: the authorities decide. */
export function openQuicClientTls(
  fields: {
    readonly fingerprint?: string | null;
    readonly alpn?: string[];
    readonly serverName?: string;
  } = {},
): Promise<OpenQuicTls> {
  const { fingerprint = quicCertificate.fingerprint, alpn = ["h3"], serverName = "server.test" } = fields;
  return readQuicTlsClient(
    { "skip-cert-verify": false, alpn, ...(fingerprint === null ? {} : { fingerprint }) } as never,
    { node: "test", server: serverName, files: textFiles },
  );
}

/** The same for 0-RTT, with any certificate; connections that are made by one go on with each other's sessions. */
export function openEarlyClientTls(): OpenQuicTls {
  const crypto = quicClientCrypto(
    {
      where: "test",
      serverName: "server.test",
      nameCertVerify: null,
      skipCertVerify: true,
      fingerprint: null,
      alpn: ["h3"],
      minVersion: "TLSv1.3",
      carriesHttp2: false,
      keyPair: null,
      trust: { authorities: () => [], context: () => undefined } as never,
      clientFingerprint: "",
      reality: null,
      ech: null,
    },
    true,
  );
  assert.ok(crypto !== null);
  return crypto.openTls;
}

export function openQuicServerTls(
  options: {
    readonly ciphers?: string;
    readonly certificate?: TestCertificate;
    readonly alpn?: string[];
    /** 0-RTT is taken. */
    readonly isEarly?: boolean;
  } = {},
): OpenQuicTls {
  const native = quicLibrary();
  assert.ok(native !== null);
  const { cert, key } = options.certificate ?? quicCertificate;
  const context = native.contexts.make({
    certificate: cert,
    privateKey: key,
    alpn: options.alpn ?? ["h3"],
    minVersion: "TLSv1.3",
    ciphers: options.ciphers ?? clientTuning.ciphers,
    asksClient: false,
    authorities: null,
  });
  const open = serverTls(() => context, "", options.isEarly);
  assert.ok(open !== null);
  return open;
}
