/** Where geodata comes from and how it is kept. */
import { block, flag, httpUrl, int, leftOut, maybe, choice, text } from "#core/fields.ts";

const RELEASE = "https://github.com/MetaCubeX/meta-rules-dat/releases/download/latest";

export const GEODATA = {
  /** Null: as the command line says (`-m`), else false. */
  "geodata-mode": maybe(flag()),
  "geodata-loader": leftOut(choice(["standard", "memconservative", "memc"])).default("memconservative"),
  "geosite-matcher": text().default("succinct"),
  "geo-auto-update": flag().default(false),
  /** Hours. */
  "geo-update-interval": leftOut(int(1, 8760)).default(24),
  "geox-url": block({
    geoip: leftOut(httpUrl()).default(`${RELEASE}/geoip.dat`),
    mmdb: leftOut(httpUrl()).default(`${RELEASE}/geoip.metadb`),
    asn: leftOut(httpUrl()).default(`${RELEASE}/GeoLite2-ASN.mmdb`),
    geosite: leftOut(httpUrl()).default(`${RELEASE}/geosite.dat`),
  }).prefault({}),
};
