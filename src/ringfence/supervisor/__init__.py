"""The one door: decides, records, has boxes started, answers. The only room that knows all the others."""
