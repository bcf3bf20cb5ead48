"""Task presets: named templates for chats."""
