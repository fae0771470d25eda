/** Carriers of managed users below REALITY. */
import { anytls } from "#protocols/anytls/index.ts";
import { openClient } from "./protocol-pair.ts";
import { privateKey, publicKey, SHORT_ID, SITE } from "./reality.ts";
import { ANYTLS, type Carrier, ofVless } from "./user-traffic.ts";

/** `dest`: port of a site on 127.0.0.1. */
export function realityCarriers(dest: number): readonly Carrier[] {
  const keys = `    reality-config:
      dest: 127.0.0.1:${dest}
      server-names: [${SITE}]
      private-key: ${privateKey}
      short-id: [${SHORT_ID}]
`;
  const opts = { "public-key": publicKey, "short-id": SHORT_ID };
  const vless = { tls: true, servername: SITE, udp: true, "reality-opts": opts };
  return [
    ofVless("vless-reality", keys, vless),
    {
      ...ANYTLS,
      tag: "anytls-reality",
      keys: `    users: {}\n${keys}`,
      open: (port, { password }, dialer) =>
        openClient(
          anytls,
          { server: "127.0.0.1", port, password, udp: true, sni: SITE, "reality-opts": opts },
          dialer === undefined ? {} : { dialer },
        ),
    },
  ];
}
