/** Real lists that lie beside the checkout, or where WEIR_DATA names them. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const beside = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "../shared/data");

export const REAL_DATA = process.env["WEIR_DATA"] ?? beside;

/** False, or why tests of real data are skipped. */
export const noRealData: string | false = existsSync(join(REAL_DATA, "geosite/cn.mrs"))
  ? false
  : `SKIP real lists: ${REAL_DATA} has none; set WEIR_DATA`;
