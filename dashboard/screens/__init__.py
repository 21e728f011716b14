"""The pages. (A folder named `pages` beside the script would be served without `app.py`.)"""
