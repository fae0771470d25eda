/** Reads a QR code as a camera would: from the pixels that the browser shows. */
import type { Locator, Page } from "playwright-core";
import decodeQr from "qr/decode.js";

interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: readonly number[];
}

/** `code` is on the page; a second page of the browser takes the picture apart. Throws where no code is found. */
export async function readQr(page: Page, code: Locator): Promise<string> {
  await code.scrollIntoViewIfNeeded();
  const picture = (await code.screenshot()).toString("base64");
  const other = await page.context().newPage();
  try {
    const found = await other.evaluate(`(async () => {
      const image = new Image();
      image.src = "data:image/png;base64,${picture}";
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      const context = canvas.getContext("2d");
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      return { width: canvas.width, height: canvas.height, data: [...data] };
    })()`);
    const { width, height, data } = found as Pixels;
    return decodeQr({ width, height, data: Uint8Array.from(data) });
  } finally {
    await other.close();
  }
}
