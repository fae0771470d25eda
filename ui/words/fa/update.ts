import type { SameKeys } from "#lib/words.ts";
import type { update as english } from "../en/update.ts";

export const update: SameKeys<typeof english> = {
  "update.title": "نسخه",
  "update.running": "در حال اجرا",
  "update.check": "بررسی نسخهٔ جدیدتر",
  "update.off": "جای نسخه‌های جدیدتر پیکربندی نشده است: `update.url` و `update.public-key`.",
  "update.newer": "{version} جدیدتر است.",
  "update.same": "این جدیدترین نسخه است.",
  "update.older": "در پوشهٔ انتشار {version} است که قدیمی‌تر است: نسخهٔ جدیدتری نیست.",
  "update.unknown": "در پوشهٔ انتشار {version} است و نمی‌توان گفت که جدیدتر است.",
  "update.byHand":
    "`weir update` روی همان دستگاه آن را می‌گیرد؛ با `update.by-controller` این صفحه هم می‌تواند.",
  "update.take": "به‌روزرسانی به {version}",
  "update.ask": "برنامه به‌روز شود؟",
  "update.text":
    "{version} دریافت، با کلید بررسی و نصب می‌شود. بدون قطع اتصال‌ها جای این نسخه را می‌گیرد؛ اگر نشد، همین نسخه ادامه می‌دهد. صفحه دوباره بارگذاری می‌شود.",
  "update.failed": "به‌روز نشد",
  "update.busy": "در حال به‌روزرسانی؛ شاید چند دقیقه طول بکشد",
  "update.done": "{version} در حال اجراست",
};
