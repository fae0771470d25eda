/** Addresses by which installed clients take a subscription over from a browser. Their schemes are the clients' own. */

interface Client {
  readonly name: string;
  /** The form of the subscription that it reads best; "": the link. */
  readonly format: "" | "mihomo" | "sing-box";
  readonly address: (url: string, title: string) => string;
}

const enc = encodeURIComponent;

/**
 * Sources: Clash for Windows, "URL schemes", which its successors kept; sing-box, "Graphical clients"; v2rayNG,
 * UrlSchemeActivity (the name is the fragment); for the others the forms that panels for subscriptions use.
 */
const CLIENTS: readonly Client[] = [
  {
    name: "Clash / mihomo",
    format: "mihomo",
    address: (url, title) => `clash://install-config?url=${enc(url)}&name=${enc(title)}`,
  },
  {
    name: "sing-box",
    format: "sing-box",
    address: (url, title) => `sing-box://import-remote-profile?url=${enc(url)}#${enc(title)}`,
  },
  { name: "Hiddify", format: "", address: (url, title) => `hiddify://import/${url}#${enc(title)}` },
  {
    name: "v2rayNG",
    format: "",
    address: (url, title) => `v2rayng://install-sub?url=${enc(url)}#${enc(title)}`,
  },
  { name: "Streisand", format: "", address: (url, title) => `streisand://import/${url}#${enc(title)}` },
  {
    name: "Shadowrocket",
    format: "",
    address: (url, title) =>
      `shadowrocket://add/sub://${Buffer.from(url).toString("base64url")}?remark=${enc(title)}`,
  },
];

export interface Import {
  readonly name: string;
  readonly address: string;
}

/** Of clients that can read one of the forms that there are. */
export function importsOf(
  url: string,
  title: string,
  forms: Readonly<Record<"mihomo" | "sing-box", boolean>>,
): readonly Import[] {
  return CLIENTS.filter(({ format }) => format === "" || forms[format]).map(({ name, format, address }) => ({
    name,
    address: address(format === "" ? url : `${url}?format=${format}`, title),
  }));
}
