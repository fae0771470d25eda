import type { SameKeys } from "#lib/words.ts";
import type { restore as english } from "../en/restore.ts";

export const restore: SameKeys<typeof english> = {
  "restore.title": "بازگردانی پشتیبان",
  "restore.file": "فایل پشتیبان",
  "restore.key": "گذرواژه یا کلید age، اگر رمزنگاری شده است",
  "restore.keyHint":
    "از کلید age خط AGE-SECRET-KEY-1… را بنویسید. فقط برای خواندن فایل به weir فرستاده می‌شود و جایی نگه داشته نمی‌شود.",
  "restore.look": "دیدن محتوا",
  "restore.made": "زمان ساخت",
  "restore.version": "ساختهٔ",
  "restore.listeners": "شنونده‌ها",
  "restore.choices": "گروه‌های دارای انتخاب",
  "restore.same": "همان پیکربندی کنونی",
  "restore.different": "پیکربندی دیگر",
  "restore.lost": "آنچه اکنون هست و در پشتیبان نیست",
  "restore.lostNothing": "هیچ کاربر، توکن یا شنونده‌ای کم نیست.",
  "restore.lostAlways":
    "ترافیک، سابقهٔ تغییرات و رویدادهای پس از ساخت پشتیبان در آن نیست. همهٔ آنچه اکنون هست با نام *.before-restore-* روی همان دستگاه می‌ماند و پیکربندی به عنوان یکی از نسخه‌هایش.",
  "restore.otherSecret": "پس از آن صفحه رمز دیگری می‌خواهد: رمزی که در پیکربندی پشتیبان است.",
  "restore.otherAddress": "پس از آن کنترلر روی نشانی دیگری گوش می‌دهد: شاید این صفحه آن را پیدا نکند.",
  "restore.sure": "جایگزینی وضعیت کنونی؛ همهٔ اتصال‌ها قطع می‌شوند",
  "restore.other": "انتخاب فایل دیگر",
  "restore.put": "بازگردانی و راه‌اندازی دوباره",
  "restore.restarting": "پشتیبان آماده است؛ weir با آن دوباره راه‌اندازی می‌شود",
  "restore.open": "بازگردانی پشتیبان…",
  "restore.entries": { one: "{count} مورد", other: "{count} مورد" },
};
