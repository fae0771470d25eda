import type { SameKeys } from "#lib/words.ts";
import type { en } from "./en.ts";

export const fa: SameKeys<typeof en> = {
  "page.language": "زبان",

  "portal.over": "سهمیهٔ ترافیک تمام شد",
  "portal.own": "ترافیک شما",
  "portal.used": "مصرف در بازه",
  "portal.left": "باقی‌مانده",
  "portal.rate": "سرعت اکنون",
  "portal.limit": "محدودیت سرعت",
  "portal.upload": "آپلود",
  "portal.download": "دانلود",
  "portal.both": "آپلود {upload}، دانلود {download}",
  "portal.unlimited": "نامحدود",
  "portal.plot": "۲۴ ساعت گذشته",
  "portal.days": "۳۰ روز گذشته",
  "portal.months": "۱۲ ماه گذشته",
  "portal.sum": "روی هم {sum}",
  "portal.compared": "روی هم {sum} ({change}، در بازهٔ پیش از آن {before})",
  "portal.lifts": "با آزاد شدن بازه، محدودیت خودبه‌خود برداشته می‌شود.",
  "portal.liftsAt": "با آزاد شدن بازه، محدودیت خودبه‌خود برداشته می‌شود (اگر دیگر مصرف نشود، حدود {time}).",
  "portal.none": "سیاستی دربارهٔ این دستگاه نیست.",
  "portal.denied": "این لینک معتبر نیست یا منقضی شده است.",
  "portal.gone": "سهمیه دیگر تمام نیست. صفحه‌ای را که می‌خواستید دوباره باز کنید.",

  "subscription.state": "وضعیت",
  "subscription.active": "فعال",
  "subscription.disabled": "غیرفعال",
  "subscription.expired": "منقضی",
  "subscription.limited": "سهمیه تمام شده",
  "subscription.used": "مصرف‌شده",
  "subscription.usedText": "{bytes} (آپلود {upload})",
  "subscription.left": "باقی‌مانده",
  "subscription.leftText": "{left} از {total}",
  "subscription.until": "تا",
  "subscription.import": "افزودن به برنامه",
  "subscription.importText":
    "این صفحه را روی دستگاهی که برنامه در آن است باز کنید و نام برنامه را بزنید. یا کد را اسکن کنید، یا نشانی را در برنامه کپی کنید.",
  "subscription.subscription": "اشتراک",
  "subscription.node": "نود",
};
